"""Quality: geometric mean of best-known cost over cost, on the instances that count. The score of a track."""

from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result
from opmark.leaderboards.scoring.score_formulas import geometric_mean


class Quality(Metric):
    """1 is the best known everywhere; an invalid answer counts 0.01."""

    summary = "geometric mean of best known / cost"

    def value(self, results: Sequence[Result]) -> float | None:
        """Over scored instances."""
        scored = [result.quality for result in results if result.scored]
        return geometric_mean(scored) if scored else None


METRIC = Quality()
