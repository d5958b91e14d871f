"""Run opsim 1 on placements: one with its whole schedule, or many with only their costs."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.contiguity import contiguous_rows
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import Profile, profile_named
from opmark.leaderboards.simulator.stash import stashed_bytes, stashed_rows, with_replicas

# The cost of a placement that cannot run at all.
INVALID_COST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When everything ran, in ns: units by number, and transfers, whose hops lie in rows of `hop_offsets`.

    `cost_ns` is the problem's objective in whole steps of its unit (ns, or 10⁻¹² of the currency), rounded up from
    `exact_cost`; `latency_ns` is when one pass ends. `peak_bytes` is per device, weights included. With replicas that
    share each pass, transfers and the rest of the schedule are those of `expanded`, whose units are the parts; so it is
    with several passes, whose copies of units each have a name. `requests_ns` is the latency of each request.
    `release_ns`, per tensor, is when inputs come; where it is given, outputs leave once they are on the host.
    """

    cost_ns: int
    unit_start_ns: Integers
    unit_end_ns: Integers
    transfer_tensor: Integers
    transfer_destination: Integers
    hop_offsets: Integers
    hop_link: Integers
    hop_start_ns: Integers
    hop_end_ns: Integers
    peak_bytes: Integers
    latency_ns: int = 0
    exact_cost: Fraction | None = None
    requests_ns: Integers | None = None
    release_ns: Integers | None = None
    expanded: "tuple[Problem, Placement, Schedule] | None" = None

    @property
    def value(self) -> Fraction:
        """The cost before it was rounded up."""
        return Fraction(self.cost_ns) if self.exact_cost is None else self.exact_cost


def simulate(problem: Problem, placement: Placement, profile: Profile | None = None) -> Schedule:
    """The schedule of one placement under `profile` (default: the problem's own); memory is reported, not enforced.

    Raises `PlacementError` where a device cannot run a unit, a tensor has no way, or orders block one another.
    """
    rules = profile_named(problem.profile) if profile is None else profile
    if rules.model is not None:
        return rules.model.schedule(problem, placement)
    objective = OBJECTIVES.load(problem.objective)
    passes = objective.passes(problem)
    shared = bool(placement.replicas) and passes is None and problem.objective != "throughput"
    if passes is not None:
        schedule = passes.schedule(problem, placement, rules)
    else:
        schedule = run_expanded(problem, placement, rules) if shared else run_events(problem, placement, rules)
    if passes is None and placement.replicas and not shared and problem.memory_mode != "stash":
        schedule = replace(schedule, peak_bytes=with_replicas(schedule.peak_bytes, placement))
    if passes is None and problem.memory_mode == "stash":
        schedule = replace(schedule, peak_bytes=stashed_bytes(problem, placement))
    cost = objective.cost(problem, placement, schedule.latency_ns, rules)
    return replace(schedule, cost_ns=math.ceil(cost), exact_cost=cost if isinstance(cost, Fraction) else None)


def run_events(problem: Problem, placement: Placement, rules: Profile) -> Schedule:
    """One pass through the graph by the event simulation, its latency as cost. Raises as `simulate` does."""
    return run_arrays(problem, problem.arrays.under(rules), placement, rules)


def run_arrays(problem: Problem, arrays: ProblemArrays, placement: Placement, rules: Profile) -> Schedule:
    """As `run_events` for `arrays` of the problem's units with times or requests of their own."""
    from opmark.leaderboards.simulator import engine

    outputs = room_for(arrays)
    order_offsets, order_units = placement.order_rows(arrays.devices)
    priority = arrays.default_priority if placement.priority is None else placement.priority
    compiled: Any = engine.run
    status = compiled(
        *arrays.packed, placement.device, priority, order_offsets, order_units, int(rules.contention), outputs
    )
    info = outputs[0].tolist()
    if status == engine.UNSUPPORTED:
        unit, device = problem.units[info[3]].name, problem.cluster.devices[info[4]].name
        raise PlacementError(f"device {device!r} cannot run unit {unit!r}: it has no exec_ns for that type")
    if status == engine.NO_ROUTE:
        tensor, device = problem.tensors[info[3]].name, problem.cluster.devices[info[4]].name
        raise PlacementError(f"no route brings tensor {tensor!r} to device {device!r}")
    if status == engine.STUCK:
        raise PlacementError("the orders of the devices block one another")
    _, start, end, _, tensor_of, destination, hop_offsets, hop_link, hop_start, hop_end, peak = outputs
    latency, transfers, used = info[:3]
    return Schedule(
        cost_ns=latency,
        latency_ns=latency,
        unit_start_ns=start,
        unit_end_ns=end,
        transfer_tensor=tensor_of[:transfers],
        transfer_destination=destination[:transfers],
        hop_offsets=hop_offsets[: transfers + 1],
        hop_link=hop_link[:used],
        hop_start_ns=hop_start[:used],
        hop_end_ns=hop_end[:used],
        peak_bytes=peak,
    )


def run_expanded(problem: Problem, placement: Placement, rules: Profile) -> Schedule:
    """One pass that replicas share: a unit's span reaches from its first part's start to its last part's end."""
    from opmark.leaderboards.simulator.replicas import expand

    wide = expand(problem, placement)
    inner = run_events(wide.problem, wide.placement, rules)
    start = np.full(len(problem.units), INVALID_COST, dtype=np.int64)
    end = np.zeros(len(problem.units), dtype=np.int64)
    own = wide.part_of >= 0
    np.minimum.at(start, wide.part_of[own], inner.unit_start_ns[own])
    np.maximum.at(end, wide.part_of[own], inner.unit_end_ns[own])
    return replace(inner, unit_start_ns=start, unit_end_ns=end, expanded=(wide.problem, wide.placement, inner))


def fits(problem: Problem, schedule: Schedule) -> bool:
    """Whether no device ever holds more than it has."""
    return bool((schedule.peak_bytes <= problem.arrays.device_memory_bytes).all())


def simulate_many(
    problem: Problem,
    devices: Integers,
    priorities: Integers | None = None,
    *,
    profile: Profile | None = None,
    enforce_memory: bool = True,
) -> Integers:
    """The cost of each row of `devices` (rows x units), `INVALID_COST` where it cannot run, does not fit or returns.

    `priorities` has one row per placement or a single one for all; without it the default rank is used. Costs are those
    of the problem's objective under `profile` (default: the problem's own), without replicas.
    """
    costs, peaks = costs_and_peaks(problem, devices, priorities, profile=profile)
    if enforce_memory:
        costs[(peaks > problem.arrays.device_memory_bytes).any(axis=1)] = INVALID_COST
    return costs


def costs_and_peaks(
    problem: Problem, devices: Integers, priorities: Integers | None = None, *, profile: Profile | None = None
) -> tuple[Integers, Integers]:
    """As `simulate_many` without a look at the memory, and peak bytes per row and device."""
    rules = profile_named(problem.profile) if profile is None else profile
    table = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1, problem.arrays.units)
    if rules.model is not None:
        costs, peaks = rules.model.costs(problem, table)
    else:
        objective = OBJECTIVES.load(problem.objective)
        passes = objective.passes(problem)
        if passes is None:
            latencies, peaks = _event_costs(problem, table, priorities, rules)
        else:
            latencies, peaks = passes.rows(problem, table, priorities, rules)
        costs = objective.costs(problem, table, latencies, rules)
        if passes is None and problem.memory_mode == "stash":
            peaks = stashed_rows(problem, table)
    if problem.contiguous:
        costs[~contiguous_rows(problem, table)] = INVALID_COST
    return costs, peaks


def _event_costs(
    problem: Problem, table: Integers, priorities: Integers | None, rules: Profile
) -> tuple[Integers, Integers]:
    """Latency per row and peak bytes per row and device."""
    from opmark.leaderboards.simulator import engine

    arrays = problem.arrays.under(rules)
    priority = arrays.default_priority if priorities is None else np.ascontiguousarray(priorities, dtype=np.int64)
    peaks = np.zeros(len(table) * arrays.devices, dtype=np.int64)
    no_order = np.zeros(arrays.devices + 1, dtype=np.int64)
    compiled: Any = engine.run_many
    latencies: Integers = compiled(
        *arrays.packed,
        table.reshape(-1),
        priority.reshape(-1),
        no_order,
        no_order[:0],
        int(rules.contention),
        room_for(arrays),
        peaks,
    )
    return latencies, peaks.reshape(-1, arrays.devices)


def room_for(arrays: ProblemArrays) -> tuple[Integers, ...]:
    """Arrays that hold the schedule of any placement, even with every tensor sent to every reader."""
    tensors = len(arrays.tensor_bytes)
    transfers = len(arrays.consumer_units) + tensors
    hops = transfers * int(np.diff(arrays.route_offsets).max(initial=0))
    sizes = (5, arrays.units, arrays.units, tensors + 1, transfers, transfers, transfers + 1, hops, hops, hops)
    return tuple(np.zeros(size, dtype=np.int64) for size in (*sizes, arrays.devices))
