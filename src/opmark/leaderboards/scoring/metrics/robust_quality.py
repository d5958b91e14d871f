"""Robust quality: the score that is left when the predictors err as much as they say they may."""

from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result
from opmark.leaderboards.scoring.score_formulas import geometric_mean, quality


class RobustQuality(Metric):
    """Below the score: the placement profits from an error of prediction. Without intervals the cost counts."""

    summary = "geometric mean of best known / median cost over draws of the predictors' errors"

    def value(self, results: Sequence[Result]) -> float | None:
        """Over scored instances, if any of them was drawn."""
        scored = [result for result in results if result.scored]
        if not any(result.drawn for result in scored):
            return None
        return geometric_mean(
            [quality(result.drawn.median if result.drawn else result.cost, result.best_known) for result in scored]
        )


METRIC = RobustQuality()
