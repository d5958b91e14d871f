"""Bursty arrivals: gamma gaps whose deviation is several times their mean.

Li et al., "AlpaServe: Statistical multiplexing with model parallelism for deep learning serving", OSDI 2023: a gamma
process; its coefficient of variation measures how bursty the traffic is.
"""

import random
from collections.abc import Iterator

from opmark.leaderboards.problem.rules.arrival_process import ArrivalProcess

# Standard deviation over mean of the gaps; 1 would be Poisson.
COEFFICIENT_OF_VARIATION = 4.0


class Bursty(ArrivalProcess):
    """Many requests close together, then none for long."""

    summary = "bursts and pauses, gamma gaps with a coefficient of variation of 4"

    def gaps(self, generator: random.Random) -> Iterator[float]:
        """Gaps of mean 1."""
        shape = COEFFICIENT_OF_VARIATION**-2
        while True:
            yield generator.gammavariate(shape, 1 / shape)


ARRIVAL_PROCESS = Bursty()
