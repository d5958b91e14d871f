"""The interface of a metric, a column beside the score.

Each metric is one file of `opmark.leaderboards.scoring.metrics`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opmark.core.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Costs over draws of the predictors' errors: the lower median and the 95th percentile.

    `won` is known for pools: the share of draws in which the answer is valid and no other entry's is cheaper.
    """

    median: int
    p95: int
    won: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One entry on one instance; costs in ns. An invalid answer has a `reason` and no cost.

    `best_known` is the frozen reference or, without one, the best cost on this board. `single` is the cost on the best
    single device, None where no device holds the problem. `scored` is false where a placement can win nothing. `drawn`
    is set where the problem's costs have intervals.
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
    """One number that summarises an entry's results."""

    summary: ClassVar[str]
    # The heading of the column; empty where it is the registered name.
    title: ClassVar[str] = ""

    @abstractmethod
    def value(self, results: Sequence[Result]) -> float | None:
        """The number over all instances of a track, or None where it is undefined."""


METRICS: Registry[Metric] = Registry("opmark.leaderboards.scoring.metrics", "METRIC", "metric")
