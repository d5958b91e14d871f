"""Robust quality: the score with median costs over draws of the predictors' errors."""

from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result
from opmark.leaderboards.scoring.score_formulas import geometric_mean, quality


class RobustQuality(Metric):
    """A value below the score shows that the placement profits from prediction errors.

    Where a problem has no intervals, its cost counts.
    """

    summary = "geometric mean of best known / median cost over draws of the predictors' errors"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over scored instances; None where none of them has intervals."""
        scored = [result for result in results if result.scored]
        if not any(result.drawn for result in scored):
            return None
        return geometric_mean(
            [quality(result.drawn.median if result.drawn else result.cost, result.best_known) for result in scored]
        )


METRIC = RobustQuality()
