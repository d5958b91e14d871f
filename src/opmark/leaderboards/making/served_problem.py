"""A problem as one that serves requests: its trace drawn at a rate and with a target that mean something to it."""

from collections.abc import Sequence
from dataclasses import replace

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.arrival_process import NS_PER_S, drawn_arrivals
from opmark.leaderboards.search.single import best_single_device

REQUESTS = 100
# Of what the best single device could just serve, and how many of its latencies an answer may take.
LOAD = 0.7
LATENCIES_ALLOWED = 3


def served(
    problem: Problem,
    *,
    process: str,
    rate_per_s: float | None = None,
    requests: int = REQUESTS,
    target_ns: int | None = None,
    load: float = LOAD,
    seed: int = 0,
    networks: Sequence[str] = (),
) -> Problem:
    """`problem` with the objective serving and `requests` requests of each network.

    Without a rate every network gets `load` times what the best single device can serve; without a target an answer
    may take `LATENCIES_ALLOWED` times as long as one pass there. `networks` are what the names of each network's units
    begin with. Raises `PlacementError` where no device holds the problem that a rate or target is worked out from.
    """
    single_ns = 0
    if rate_per_s is None or target_ns is None:
        _, single_ns = best_single_device(replace(problem, objective="latency", arrivals=(), micro_batches=0))
    rate = load * NS_PER_S / max(1, single_ns) if rate_per_s is None else rate_per_s
    target = max(1, LATENCIES_ALLOWED * single_ns) if target_ns is None else target_ns
    owned = [tuple(unit.name for unit in problem.units if unit.name.startswith(prefix)) for prefix in networks]
    arrivals = tuple(
        drawn_arrivals(process, rate_per_s=rate, requests=requests, target_ns=target, seed=seed + number, units=units)
        for number, units in enumerate(owned or [()])
    )
    return replace(problem, objective="serving", arrivals=arrivals, reference=None)
