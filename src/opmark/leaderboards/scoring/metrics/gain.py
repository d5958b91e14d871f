"""Gain: which part of the way from the best single device to the best known an entry goes, on average."""

from collections.abc import Sequence
from statistics import fmean

from opmark.leaderboards.scoring.metric import Metric, Result


class Gain(Metric):
    """0 is pointless, 1 the best known, negative worse than one device; invalid answers count as 0."""

    summary = "mean of (best single - cost) / (best single - best known)"

    def value(self, results: Sequence[Result]) -> float | None:
        """Over scored instances that one device can hold."""
        found = [
            0.0 if result.cost is None else result.gain
            for result in results
            if result.scored and (result.cost is None or result.gain is not None)
        ]
        return fmean(value for value in found if value is not None) if found else None


METRIC = Gain()
