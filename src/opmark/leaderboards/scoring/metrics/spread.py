"""Spread: the increase of cost in the worst twentieth of draws of the predictors' errors."""

import math
from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result


class Spread(Metric):
    """0 where prediction errors change nothing."""

    summary = "geometric mean of the 95th percentile over draws of the predictors' errors / cost, minus 1"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over instances with a valid answer and cost intervals."""
        logs = [math.log(result.drawn.p95 / result.cost) for result in results if result.drawn and result.cost]
        return math.exp(math.fsum(logs) / len(logs)) - 1 if logs else None


METRIC = Spread()
