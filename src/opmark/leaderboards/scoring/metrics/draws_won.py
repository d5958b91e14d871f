"""Draws won: how often an answer stays the best one when the predictors err."""

from collections.abc import Sequence
from statistics import fmean

from opmark.leaderboards.scoring.metric import Metric, Result


class DrawsWon(Metric):
    """Answers to one pool share their draws; a draw in which every answer misses the goal is won by none."""

    summary = "the share of draws of the predictors' errors in which no other entry's answer is cheaper (pools)"
    title = "draws won"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over scored pools, an invalid answer counting 0; None where nothing was drawn."""
        scored = [result for result in results if result.scored]
        if not any(result.drawn is not None and result.drawn.won is not None for result in scored):
            return None
        return fmean((result.drawn.won or 0.0) if result.drawn is not None else 0.0 for result in scored)


METRIC = DrawsWon()
