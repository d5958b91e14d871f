"""Poisson arrivals: independent requests."""

import random
from collections.abc import Iterator

from opmark.leaderboards.problem.rules.arrival_process import ArrivalProcess


class Poisson(ArrivalProcess):
    """Exponential gaps."""

    summary = "independent requests, exponential gaps"

    def gaps(self, generator: random.Random) -> Iterator[float]:
        """Gaps of mean and deviation 1."""
        while True:
            yield generator.expovariate(1.0)


ARRIVAL_PROCESS = Poisson()
