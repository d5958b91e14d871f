"""Requests of a trace in flight on one placement, and their latencies."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.events import room_for, run_arrays
from opmark.leaderboards.simulator.passes._requests.copies import RequestCopies, request_copies
from opmark.leaderboards.simulator.several_passes import Passes

TAIL_PERCENT = 99


def nearest_rank(count: int, percent: int) -> int:
    """The place, from 1 on, of a percentile among `count` sorted values, by the nearest rank."""
    return max(1, -(-count * percent // 100))


def percentile(latencies_ns: Integers, percent: int) -> int:
    """The smallest observed latency that at least `percent` of all do not exceed."""
    return int(np.sort(latencies_ns)[nearest_rank(len(latencies_ns), percent) - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequests(Passes):
    """Every request runs its network's units where the placement says; a stage's replicas take requests in turn."""

    percent: int

    def schedule(self, problem: Problem, placement: Placement, profile: PublishedModel) -> Schedule:
        """All requests; the units' times are those of the request that decides the cost."""
        copies = request_copies(problem)
        arrays = _arrays(problem, copies).under(profile)
        device = _devices(copies, placement)
        own = problem.arrays.default_priority if placement.priority is None else placement.priority
        order = None
        if placement.order is not None:
            rows = [list(placement.order.get(number, ())) for number in range(arrays.devices)]
            order = dict(enumerate(copies.order(rows, problem.arrays.units)))
        wide = Placement(device=device, priority=copies.priority(own)[0], order=order)
        inner = replace(run_arrays(request_problem(problem), arrays, wide, profile), release_ns=_tensor_release(copies))
        latencies = _latencies(copies, inner)
        cost = percentile(latencies, self.percent)
        decisive = int(np.flatnonzero(latencies == cost)[0])
        start, end = np.zeros(problem.arrays.units, dtype=np.int64), np.zeros(problem.arrays.units, dtype=np.int64)
        start[copies.unit_of], end[copies.unit_of] = inner.unit_start_ns, inner.unit_end_ns
        shown = slice(copies.units[decisive], copies.units[decisive + 1])
        start[copies.unit_of[shown]] = inner.unit_start_ns[shown]
        end[copies.unit_of[shown]] = inner.unit_end_ns[shown]
        return replace(
            inner,
            latency_ns=cost,
            unit_start_ns=start,
            unit_end_ns=end,
            requests_ns=latencies,
            expanded=(request_problem(problem), wide, inner),
        )

    def rows(
        self, problem: Problem, devices: Integers, priorities: Integers | None, profile: PublishedModel
    ) -> tuple[Integers, Integers]:
        """Compiled, one row after the other."""
        from opmark.leaderboards.simulator.passes._requests import engine as request_engine

        copies = request_copies(problem)
        arrays = _arrays(problem, copies).under(profile)
        own = problem.arrays.default_priority if priorities is None else priorities
        count = len(copies.arrival_ns)
        peaks = np.zeros((len(devices), arrays.devices), dtype=np.int64)
        compiled: Any = request_engine.run_requests
        costs: Integers = compiled(
            *arrays.packed,
            np.ascontiguousarray(devices[:, copies.unit_of]),
            np.ascontiguousarray(copies.priority(own.reshape(-1, problem.arrays.units))),
            np.zeros(arrays.devices + 1, dtype=np.int64),
            int(profile.contention),
            room_for(arrays),
            peaks,
            (copies.arrival_ns, copies.units, copies.tensors),
            nearest_rank(count, self.percent),
        )
        return costs, peaks

    def graph(self, problem: Problem, placement: Placement) -> tuple[Problem, Integers]:
        """All requests."""
        return request_problem(problem), _devices(request_copies(problem), placement)

    def release_ns(self, problem: Problem, name: str) -> int:
        """The arrival of the request of that copy."""
        return int(request_copies(problem).arrival_ns[_request(name)])

    def latency_of(self, problem: Problem, ends_ns: Iterable[tuple[str, int]]) -> int:
        """The tail of the requests' latencies."""
        arrival = request_copies(problem).arrival_ns
        last = arrival.copy()
        for name, end in ends_ns:
            last[_request(name)] = max(int(last[_request(name)]), end)
        return percentile(last - arrival, self.percent)


PASSES = ServedRequests(percent=TAIL_PERCENT)


def _request(copy: str) -> int:
    return int(copy.rpartition("@")[2])


def request_problem(problem: Problem) -> Problem:
    """The graph of all requests, for pictures and traces: `unit@r` is what request r runs of `unit`."""
    known = problem.worked_out.get("request_problem")
    if isinstance(known, Problem):
        return known
    copies = request_copies(problem)
    of_unit = copies.request_of_unit.tolist()
    of_tensor = np.repeat(np.arange(len(copies.arrival_ns)), np.diff(copies.tensors)).tolist()
    units = tuple(
        replace(problem.units[unit], name=f"{problem.units[unit].name}@{request}", colocation="")
        for unit, request in zip(copies.unit_of.tolist(), of_unit, strict=True)
    )
    tensors = []
    for tensor, request in zip(copies.tensor_of.tolist(), of_tensor, strict=True):
        own = problem.tensors[tensor]
        tensors.append(
            replace(
                own,
                name=f"{own.name}@{request}",
                producer=f"{own.producer}@{request}" if own.producer else "",
                consumers=tuple(f"{name}@{request}" for name in own.consumers),
            )
        )
    made = replace(
        problem,
        units=units,
        tensors=tuple(tensors),
        objective="latency",
        arrivals=(),
        replication=False,
        reference=None,
    )
    problem.worked_out["request_problem"] = made
    return made


def _arrays(problem: Problem, copies: RequestCopies) -> ProblemArrays:
    """The arrays of the copies, kept for as long as the problem's own stay what they are."""
    base = problem.arrays
    known = problem.worked_out.get("request_arrays")
    if isinstance(known, tuple) and known[0] is base:
        made: ProblemArrays = known[1]
        return made
    made = copies.arrays(base)
    problem.worked_out["request_arrays"] = (base, made)
    return made


def _devices(copies: RequestCopies, placement: Placement) -> Integers:
    device = placement.device[copies.unit_of]
    for primary, others in placement.replicas.items():
        members = np.array([primary, *others], dtype=np.int64)
        own = device == primary
        device[own] = members[copies.request_of_unit[own] % len(members)]
    return device


def _latencies(copies: RequestCopies, inner: Schedule) -> Integers:
    """Per request, ns until everything of it has ended."""
    last = np.maximum(copies.arrival_ns, np.maximum.reduceat(inner.unit_end_ns, copies.units[:-1]))
    request = np.repeat(np.arange(len(copies.arrival_ns)), np.diff(copies.tensors))[inner.transfer_tensor]
    hops = np.repeat(request, np.diff(inner.hop_offsets))
    np.maximum.at(last, hops, inner.hop_end_ns)
    found: Integers = last - copies.arrival_ns
    return found


def _tensor_release(copies: RequestCopies) -> Integers:
    return np.repeat(copies.arrival_ns, np.diff(copies.tensors))
