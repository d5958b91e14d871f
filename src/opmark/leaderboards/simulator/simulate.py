"""Run opsim 1 on placements: one with its whole schedule, or many with only their costs."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from opmark.leaderboards.problem.contiguity import contiguous_rows
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import PublishedModel, profile_named
from opmark.leaderboards.problem.schedule import INVALID_COST, Schedule
from opmark.leaderboards.simulator.charges import rows_within_limits
from opmark.leaderboards.simulator.events import room_for, run_events
from opmark.leaderboards.simulator.memory import stashed_bytes, stashed_rows, with_replicas
from opmark.leaderboards.simulator.replicas import expand
from opmark.leaderboards.simulator.several_passes import passes_of


def simulate(problem: Problem, placement: Placement, profile: PublishedModel | None = None) -> Schedule:
    """The schedule of one placement under `profile` (default: the problem's own); memory is reported, not enforced.

    Raises `PlacementError` if a device cannot run a unit, a tensor has no route, or orders block one another.
    """
    rules = profile_named(problem.profile) if profile is None else profile
    if rules.model is not None:
        return rules.model.schedule(problem, placement)
    passes = passes_of(problem)
    if passes is not None:
        schedule = passes.schedule(problem, placement, rules)
    elif placement.replicas and not problem.pipelined:
        schedule = _run_parts(problem, placement, rules)
    else:
        schedule = run_events(problem, placement, rules)
        if placement.replicas and problem.memory_mode != "stash":
            schedule = replace(schedule, peak_bytes=with_replicas(schedule.peak_bytes, placement))
    if passes is None and problem.memory_mode == "stash":
        schedule = replace(schedule, peak_bytes=stashed_bytes(problem, placement))
    cost = OBJECTIVES.load(problem.objective).cost(problem, placement, schedule.latency_ns, rules)
    return replace(schedule, cost_ns=math.ceil(cost), exact_cost=cost if isinstance(cost, Fraction) else None)


def _run_parts(problem: Problem, placement: Placement, rules: PublishedModel) -> Schedule:
    """One pass that replicas share: a unit's span reaches from its first part's start to its last part's end."""
    wide = expand(problem, placement)
    inner = run_events(wide.problem, wide.placement, rules)
    start, end = inner.spans_of(wide.part_of, len(problem.units))
    return replace(inner, unit_start_ns=start, unit_end_ns=end, expanded=(wide.problem, wide.placement, inner))


def fits(problem: Problem, schedule: Schedule) -> bool:
    """True if no device ever holds more than its memory."""
    return bool((schedule.peak_bytes <= problem.arrays.device_memory_bytes).all())


def simulate_many(
    problem: Problem,
    devices: Integers,
    priorities: Integers | None = None,
    *,
    profile: PublishedModel | None = None,
    enforce_memory: bool = True,
) -> Integers:
    """The cost of each row of `devices` (rows x units), `INVALID_COST` if it cannot run or does not fit.

    So are the costs of rows that return to a device where parts are contiguous, and of rows that miss a limit.

    `priorities` has one row per placement or a single one for all; without it the default rank is used. Costs are those
    of the problem's objective under `profile` (default: the problem's own), without replicas.
    """
    costs, peaks = costs_and_peaks(problem, devices, priorities, profile=profile)
    if enforce_memory:
        costs[(peaks > problem.arrays.device_memory_bytes).any(axis=1)] = INVALID_COST
    return costs


def costs_and_peaks(
    problem: Problem, devices: Integers, priorities: Integers | None = None, *, profile: PublishedModel | None = None
) -> tuple[Integers, Integers]:
    """As `simulate_many` without the check of the memory, and peak bytes per row and device."""
    rules = profile_named(problem.profile) if profile is None else profile
    table = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1, problem.arrays.units)
    if rules.model is not None:
        costs, peaks = rules.model.costs(problem, table)
        latencies = costs
    else:
        passes = passes_of(problem)
        run = _event_costs if passes is None else passes.rows
        latencies, peaks = run(problem, table, priorities, rules)
        costs = OBJECTIVES.load(problem.objective).costs(problem, table, latencies, rules)
        if passes is None and problem.memory_mode == "stash":
            peaks = stashed_rows(problem, table)
    if problem.limits:
        costs[~rows_within_limits(problem, table, latencies, rules)] = INVALID_COST
    if problem.contiguous:
        costs[~contiguous_rows(problem, table)] = INVALID_COST
    return costs, peaks


def _event_costs(
    problem: Problem, table: Integers, priorities: Integers | None, rules: PublishedModel
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
