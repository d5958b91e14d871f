"""Gap: the mean distance of an entry's costs to the proven lower bounds."""

import math
from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result


class Gap(Metric):
    """Geometric mean of cost / bound, minus 1, over valid answers; 0 is proven optimal."""

    summary = "geometric mean of cost / lower bound, minus 1"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over all instances with a valid answer and a positive bound."""
        logs = [math.log(r.cost / r.bound) for r in results if r.cost is not None and r.cost > 0 and r.bound > 0]
        return math.exp(math.fsum(logs) / len(logs)) - 1 if logs else None


METRIC = Gap()
