"""A column beside the score; one file of `opmark.leaderboards.scoring.metrics` per column."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opmark.core.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Costs under draws of the predictors' errors: the lower median, and what 95 % of the draws do not exceed."""

    median: int
    p95: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One entry on one instance. Costs in ns; an invalid answer has no cost and a `reason`.

    `best_known` is the frozen reference or, where there is none, the best cost on this board; `single` is the best
    single device, None where none holds the problem; `scored` is false where there is nothing to win. `drawn` is there
    where the problem's costs have intervals.
    """

    problem: str
    cost: int | None
    reason: str = ""
    bound: int
    best_known: int
    single: int | None
    scored: bool
    quality: float
    gain: float | None
    drawn: Drawn | None = None


class Metric(ABC):
    """A number that sums up one entry's results."""

    summary: ClassVar[str]
    larger_is_better: ClassVar[bool] = True

    @abstractmethod
    def value(self, results: Sequence[Result]) -> float | None:
        """The number over all instances of a track, or None where nothing can be said."""


METRICS: Registry[Metric] = Registry("opmark.leaderboards.scoring.metrics", "METRIC", "metric")
