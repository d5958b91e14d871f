"""The requests of a serving problem: when each comes, what it runs, and how soon it wants its answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opmark.leaderboards.problem.problem import Problem

# Copies of units that a trace may ask for in all.
COPIES_AT_MOST = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Requests for one network, in ns from the start of the trace, in order; an answer is late after `target_ns`.

    A request runs every unit once, or only those of `units` where several networks are served. `source` says in words
    how the trace was drawn; the trace itself is what counts.
    """

    arrival_ns: tuple[int, ...]
    target_ns: int
    units: tuple[str, ...] = ()
    source: str = ""


def arrival_problems(problem: "Problem") -> Iterator[str]:
    """One sentence for everything that is wrong with the requests of a problem."""
    if problem.objective != "serving":
        if problem.arrivals:
            yield f"arrivals: only the objective serving has requests, not {problem.objective!r}"
        return
    from opmark.leaderboards.problem.rules.profile import PROFILES

    if not problem.arrivals:
        yield "arrivals: the objective serving needs requests"
    if problem.memory_mode != "liveness":
        yield f"memory_mode: liveness where requests are served, not {problem.memory_mode!r}"
    name = problem.profile.replace("_", "-")
    if name in PROFILES.names() and PROFILES.load(name).model is not None:
        yield f"profile: one that simulates events where requests are served, not {problem.profile!r}"
    if problem.contiguous:
        yield "contiguous: a pipeline's rule, which says nothing about requests"
    count = 0
    for number, stream in enumerate(problem.arrivals):
        key = f"arrivals.{number}"
        if not stream.arrival_ns:
            yield f"{key}.arrival_ns: at least one request is needed"
        elif min(stream.arrival_ns) < 0 or max(stream.arrival_ns) >= 2**53:
            yield f"{key}.arrival_ns: must be ns from 0 to 2^53"
        elif list(stream.arrival_ns) != sorted(stream.arrival_ns):
            yield f"{key}.arrival_ns: must be in order"
        if not 0 < stream.target_ns < 2**53:
            yield f"{key}.target_ns: must be ns from 1 to 2^53, not {stream.target_ns}"
        count += len(stream.arrival_ns) * (len(stream.units) or len(problem.units))
    if count > COPIES_AT_MOST:
        yield f"arrivals: {count:,} units in all, more than {COPIES_AT_MOST:,}"
    yield from _network_problems(problem)


def _network_problems(problem: "Problem") -> Iterator[str]:
    """Networks are apart: every unit belongs to one, and no tensor passes from one to another."""
    if len(problem.arrivals) < 2 and not any(stream.units for stream in problem.arrivals):
        return
    network: dict[str, int] = {}
    known = {unit.name for unit in problem.units}
    for number, stream in enumerate(problem.arrivals):
        for name in stream.units:
            if name not in known:
                yield f"arrivals.{number}.units: no unit is called {name!r}"
            elif name in network:
                yield f"arrivals.{number}.units: {name!r} belongs to a network already"
            network[name] = number
    missing = sorted(known - network.keys())
    if missing:
        yield f"arrivals: no network has the unit {missing[0]!r}"
    for tensor in problem.tensors:
        ends = {network.get(name, 0) for name in (tensor.producer, *tensor.consumers) if name}
        if len(ends) > 1:
            yield f"tensors.{tensor.name}: joins networks that are served apart"
