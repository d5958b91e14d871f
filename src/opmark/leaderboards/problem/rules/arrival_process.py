"""Processes that draw the arrival times of requests, one file of `rules.arrival_processes` each."""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from opmark.core.errors import UsageError
from opmark.core.registry import Registry
from opmark.leaderboards.problem.fields import Arrivals

NS_PER_S = 1_000_000_000


class ArrivalProcess(ABC):
    """A process of gaps between requests."""

    summary: ClassVar[str]

    @abstractmethod
    def gaps(self, generator: random.Random) -> Iterator[float]:
        """An endless stream of gaps, 1 on average."""


ARRIVAL_PROCESSES: Registry[ArrivalProcess] = Registry(
    "opmark.leaderboards.problem.rules.arrival_processes", "ARRIVAL_PROCESS", "arrival process"
)


def drawn_arrivals(
    name: str, *, rate_per_s: float, requests: int, target_ns: int, seed: int = 0, units: tuple[str, ...] = ()
) -> Arrivals:
    """`requests` requests of the process called `name`, rounded to ns; the same seed gives the same trace.

    Raises `UnknownNameError`, and `UsageError` for a rate, count or target that is not positive.
    """
    if not rate_per_s > 0 or requests < 1 or target_ns < 1:
        raise UsageError(
            f"requests, rate and target must be positive, not {requests}, {rate_per_s:g}/s and {target_ns} ns"
        )
    gaps = ARRIVAL_PROCESSES.load(name).gaps(random.Random(seed))
    times, now = [], 0.0
    for _ in range(requests):
        now += next(gaps) * NS_PER_S / rate_per_s
        times.append(round(now))
    source = f"{name}, {rate_per_s:g} requests per s, seed {seed}"
    return Arrivals(arrival_ns=tuple(times), target_ns=target_ns, units=units, source=source)
