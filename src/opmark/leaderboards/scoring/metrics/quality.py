"""Quality: the geometric mean of best-known cost over cost on scored instances. It is the score of a track."""

from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result
from opmark.leaderboards.scoring.score_formulas import geometric_mean


class Quality(Metric):
    """1 is the best known cost everywhere; an invalid answer counts as 0.01."""

    summary = "geometric mean of best known / cost"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over scored instances."""
        scored = [result.quality for result in results if result.scored]
        return geometric_mean(scored) if scored else None


METRIC = Quality()
