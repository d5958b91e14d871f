"""What a latency estimator must do; one file of `opmark.predictors.estimators` per estimator."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """Both labels, one entry per kernel, in nanoseconds."""

    hot_ns: Floats
    rotated_ns: Floats


class Fitted(ABC):
    """What an estimator learned about one kind on one target."""

    @abstractmethod
    def predict(self, inputs: Inputs) -> Latencies:
        """Positive, finite latencies of `inputs`."""

    @abstractmethod
    def files(self) -> dict[str, str]:
        """Everything that `Estimator.restore` needs: text by short file name, never a pickle."""

    @property
    def held_out(self) -> Latencies | None:
        """Predictions of the training rows, each made without its own shape group, where fitting made them anyway."""
        return None


class Estimator(ABC):
    """A way to predict latencies, fitted per kind and target."""

    summary: ClassVar[str]
    # Whether its authors take a network for the plain sum of its kernels; else cache pressure, gap, faults are fitted.
    plain_sum: ClassVar[bool] = False

    @abstractmethod
    def fit(self, inputs: Inputs, labels: Latencies) -> Fitted:
        """Learn from measured `labels`; `rotated_ns` is NaN where it was not measured. Needs at least one row."""

    @abstractmethod
    def restore(self, files: Mapping[str, str]) -> Fitted:
        """What `Fitted.files` described. Raises `KeyError` or `ValueError` on foreign text."""
