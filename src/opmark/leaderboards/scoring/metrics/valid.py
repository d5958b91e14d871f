"""Valid: the share of instances with a valid answer."""

from collections.abc import Sequence

from opmark.leaderboards.scoring.metric import Metric, Result


class Valid(Metric):
    """Counts every instance, scored or not."""

    summary = "share of instances with a valid answer"

    def value(self, results: Sequence[Result]) -> float | None:
        """The number of valid answers over the number of instances."""
        return sum(result.cost is not None for result in results) / len(results) if results else None


METRIC = Valid()
