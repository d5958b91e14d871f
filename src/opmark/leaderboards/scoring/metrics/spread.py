"""Spread: how much dearer an answer gets on a bad day, one draw in twenty of the predictors' errors."""

import math
from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result


class Spread(Metric):
    """0 where errors of prediction change nothing."""

    summary = "geometric mean of the 95th percentile over draws of the predictors' errors / cost, minus 1"
    larger_is_better = False

    def value(self, results: Sequence[Result]) -> float | None:
        """Over every instance with a valid answer whose costs have intervals."""
        logs = [math.log(result.drawn.p95 / result.cost) for result in results if result.drawn and result.cost]
        return math.exp(math.fsum(logs) / len(logs)) - 1 if logs else None


METRIC = Spread()
