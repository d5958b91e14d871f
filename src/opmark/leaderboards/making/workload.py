"""Give a problem its workload: an objective, and the micro-batches or the request trace that belong to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opmark.core.errors import UsageError
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.arrival_process import NS_PER_S, drawn_arrivals
from opmark.leaderboards.search.single import best_single_device

REQUESTS = 100
# The default request rate, as a share of the best single device's throughput.
LOAD = 0.7
# The default latency target, as a multiple of the best single device's latency.
LATENCIES_ALLOWED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The objective by name; with the objective `serving`, `arrivals` names the process that draws the requests.

    A missing rate or target follows from the best single device.
    """

    objective: str = "latency"
    micro_batches: int = 0
    arrivals: str = ""
    rate_per_s: float | None = None
    requests: int = REQUESTS
    target_ns: int | None = None
    seed: int = 0


def with_workload(problem: Problem, workload: Workload) -> Problem:
    """`problem` with that workload. Raises `UsageError` unless arrivals and the objective `serving` come together."""
    if (workload.objective == "serving") != bool(workload.arrivals):
        raise UsageError("the objective serving needs arrivals, and only that one", hint="--arrivals poisson")
    if workload.arrivals:
        return checked(
            serving_requests(
                problem,
                process=workload.arrivals,
                rate_per_s=workload.rate_per_s,
                requests=workload.requests,
                target_ns=workload.target_ns,
                seed=workload.seed,
            ),
            problem.name,
        )
    posed = replace(problem, objective=workload.objective, micro_batches=workload.micro_batches)
    return checked(replace(posed, unit="$" if workload.objective == "cost" else posed.unit), problem.name)


def serving_requests(
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
    """`problem` with the objective `serving` and a drawn trace of `requests` requests for each network.

    Without a rate each network gets `load` times the throughput of the best single device. Without a target a request
    may take `LATENCIES_ALLOWED` times the latency there. `networks` are the prefixes of the networks' unit names.
    Raises `PlacementError` where a rate or target is missing and no single device holds the problem.
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
