"""Gain: the mean share of the way from the best single device to the best known cost."""

from collections.abc import Sequence
from statistics import fmean

from opmark.leaderboards.scoring.metric import Metric, Result


class Gain(Metric):
    """0 is one device, 1 the best known cost, negative is worse than one device; invalid answers count as 0."""

    summary = "mean of (best single - cost) / (best single - best known)"

    def value(self, results: Sequence[Result]) -> float | None:
        """The mean over scored instances that a single device can hold."""
        found = [
            0.0 if result.cost is None else result.gain
            for result in results
            if result.scored and (result.cost is None or result.gain is not None)
        ]
        return fmean(value for value in found if value is not None) if found else None


METRIC = Gain()
