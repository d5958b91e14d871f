"""The interface of a latency estimator; each file of `opmark.predictors.estimators` implements one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Latencies


class Fitted(ABC):
    """An estimator fitted to one kind on one target."""

    @abstractmethod
    def predict(self, inputs: Inputs) -> Latencies:
        """Predict positive, finite latencies of `inputs`."""

    @abstractmethod
    def files(self) -> dict[str, str]:
        """Write everything that `Estimator.restore` needs as text, by short file name; never a pickle."""

    @property
    def held_out(self) -> Latencies | None:
        """Predictions of the training rows, each without its own shape group; None where fitting made none."""
        return None

    @property
    def inherited_half_width(self) -> float:
        """Half the interval of another predictor that is asked and may know the training rows, in nats."""
        return 0.0


class Estimator(ABC):
    """A method that predicts latencies, fitted per kind and target.

    With `plain_sum`, a network is the plain sum of its kernels, as the method's authors have it; otherwise network
    constants are fitted.
    """

    summary: ClassVar[str]
    plain_sum: ClassVar[bool] = False

    @abstractmethod
    def fit(self, inputs: Inputs, labels: Latencies) -> Fitted:
        """Fit measured `labels` of at least one row; `rotated_ns` is NaN where it was not measured."""

    @abstractmethod
    def restore(self, files: Mapping[str, str]) -> Fitted:
        """Read the texts of `Fitted.files`. Raises `KeyError` or `ValueError` on foreign text."""
