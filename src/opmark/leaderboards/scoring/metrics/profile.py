"""The integrated performance profile.

Dahl et al., "Benchmarking Neural Network Training Algorithms" (AlgoPerf), 2023: the share of instances with
cost / best known ≤ τ, averaged over τ from 1 to 2.
"""

from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result

RATIO_AT_MOST = 2.0


class PerformanceProfile(Metric):
    """1 is the best known cost everywhere; an answer that costs twice as much earns nothing."""

    title = "performance profile"
    summary = "integrated performance profile up to 2 times the best known"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over scored instances; each contributes the part of [1, 2] above its ratio."""
        scored = [result for result in results if result.scored]
        if not scored:
            return None
        return sum(_credit(result) for result in scored) / len(scored)


def _credit(result: Result) -> float:
    if result.cost is None:
        return 0.0
    ratio = max(1.0, result.cost / result.best_known) if result.best_known else 1.0
    return max(0.0, RATIO_AT_MOST - ratio) / (RATIO_AT_MOST - 1)


METRIC = PerformanceProfile()
