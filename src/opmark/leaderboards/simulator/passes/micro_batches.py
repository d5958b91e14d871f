"""A training step of several micro-batches in a pipeline: forward and backward of each in a schedule's order."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.packing import Room
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.pipeline_schedule import DEFAULT_SCHEDULE, PIPELINE_SCHEDULES
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.events import room_for, run_arrays
from opmark.leaderboards.simulator.passes._step.copies import StepCopies
from opmark.leaderboards.simulator.passes._step.memory import micro_batches_in_flight, step_peaks
from opmark.leaderboards.simulator.passes._step.plan import StepPlan, plan_step, stages_behind, unit_sequence
from opmark.leaderboards.simulator.replicas import Expansion, expand
from opmark.leaderboards.simulator.several_passes import Passes


@dataclass(frozen=True, slots=True)
class MicroBatches(Passes):
    """Devices keep strictly to the schedule that the solution names; within a pass to its priorities or its order."""

    def schedule(self, problem: Problem, placement: Placement, profile: PublishedModel) -> Schedule:
        """The whole step; a unit's time reaches from its first copy's start to its last copy's end."""
        if placement.replicas:
            return self._of_replicas(problem, placement, profile)
        return self._run(problem, placement, profile, plan_of(problem, placement))

    def rows(
        self, problem: Problem, devices: Integers, priorities: Integers | None, profile: PublishedModel
    ) -> tuple[Integers, Integers]:
        """In the default schedule, which keeps the fewest micro-batches in flight."""
        from opmark.leaderboards.simulator import engine

        own = problem.arrays.default_priority if priorities is None else priorities
        own = own.reshape(-1, problem.arrays.units)
        costs = np.full(len(devices), engine.INVALID, dtype=np.int64)
        peaks = np.zeros((len(devices), problem.arrays.devices), dtype=np.int64)
        sequence = _sequence(problem, own[0])
        room: Room | None = None
        compiled: Any = engine.run
        for row, device in enumerate(devices):
            if row and len(own) > 1:
                sequence = _sequence(problem, own[row])
            plan = plan_step(problem, device, sequence, schedule=DEFAULT_SCHEDULE)
            arrays = _arrays(problem, plan.copies).under(profile)
            room = room_for(arrays) if room is None else room
            offsets = np.cumsum([0, *map(len, plan.rows)], dtype=np.int64)
            urgency = _urgency(plan, sequence)
            order = np.concatenate(plan.rows)
            status = compiled(*arrays.packed, plan.device, urgency, offsets, order, int(profile.contention), room)
            if status == engine.FINISHED:
                costs[row] = room.info[0]
            peaks[row] = step_peaks(problem, plan) if problem.memory_mode == "stash" else room.peak
        return costs, peaks

    def timed(self, problem: Problem, placement: Placement, profile: PublishedModel) -> Callable[[Problem], int] | None:
        """No time changes the devices and orders of the copies; replicas run parts, which have times of their own."""
        if placement.replicas:
            return None
        plan = plan_of(problem, placement)
        wide = _wide(problem, placement, plan)

        def latency_ns(timed: Problem) -> int:
            arrays = _arrays(timed, plan.copies).under(profile)
            return run_arrays(plan.copies.problem, arrays, wide, profile).latency_ns

        return latency_ns

    def graph(self, problem: Problem, placement: Placement) -> tuple[Problem, Integers]:
        """The step; of replicas that of their parts."""
        plan = _plan_of_replicas(problem, placement)[2] if placement.replicas else plan_of(problem, placement)
        return plan.copies.problem, plan.device

    def facts(self, problem: Problem, placement: Placement) -> dict[str, Any]:
        """The schedule, the micro-batches, and how many of them each device has in flight at most."""
        facts: dict[str, Any] = {
            "schedule": placement.schedule or DEFAULT_SCHEDULE,
            "micro_batches": problem.micro_batches,
        }
        if not placement.replicas:
            names = [device.name for device in problem.cluster.devices]
            flying = micro_batches_in_flight(plan_of(problem, placement))
            facts["in_flight"] = dict(zip(names, flying, strict=True))
        return facts

    def _run(self, problem: Problem, placement: Placement, profile: PublishedModel, plan: StepPlan) -> Schedule:
        copies = plan.copies
        arrays = _arrays(problem, copies).under(profile)
        wide = _wide(problem, placement, plan)
        inner = run_arrays(copies.problem, arrays, wide, profile)
        inner = replace(inner, release_ns=np.zeros(len(arrays.tensor_bytes), dtype=np.int64))
        start, end = inner.spans_of(copies.unit_of, problem.arrays.units)
        if problem.memory_mode == "stash":
            inner = replace(inner, peak_bytes=step_peaks(problem, plan))
        return replace(inner, unit_start_ns=start, unit_end_ns=end, expanded=(copies.problem, wide, inner))

    def _of_replicas(self, problem: Problem, placement: Placement, profile: PublishedModel) -> Schedule:
        """Every micro-batch in parts on the replicas of its stage; replicas stand as deep as their stage does."""
        wide, parts, plan = _plan_of_replicas(problem, placement)
        schedule = self._run(wide, parts.placement, profile, plan)
        start, end = schedule.spans_of(parts.part_of, problem.arrays.units)
        return replace(schedule, unit_start_ns=start, unit_end_ns=end)


PASSES = MicroBatches()


def plan_of(problem: Problem, placement: Placement) -> StepPlan:
    """The plan of a step without replicas. Raises `PlacementError` as `plan_step` does."""
    sequence = _sequence(problem, _priority(problem, placement), placement)
    return plan_step(problem, placement.device, sequence, schedule=placement.schedule or DEFAULT_SCHEDULE)


def _plan_of_replicas(problem: Problem, placement: Placement) -> tuple[Problem, Expansion, StepPlan]:
    """The problem of the parts and its step; replicas stand as far from the end as their stage does."""
    name = placement.schedule or DEFAULT_SCHEDULE
    if PIPELINE_SCHEDULES.load(name).both_ways:
        raise PlacementError(f"the schedule {name!r} has pipelines of its own and takes no replicas")
    parts = expand(problem, placement)
    behind = stages_behind(problem, placement.device)
    for primary, row in placement.replicas.items():
        behind[list(row)] = behind[primary]
    wide = parts.problem
    sequence = _sequence(wide, _priority(wide, parts.placement), parts.placement)
    return wide, parts, plan_step(wide, parts.placement.device, sequence, schedule=name, behind=behind)


def _priority(problem: Problem, placement: Placement) -> Integers:
    return problem.arrays.default_priority if placement.priority is None else placement.priority


def _sequence(problem: Problem, priority: Integers, placement: Placement | None = None) -> Integers:
    order = None if placement is None else placement.order
    usual = order is None and priority is problem.arrays.__dict__.get("default_priority")
    known = problem.worked_out.get("unit_sequence") if usual else None
    if isinstance(known, tuple) and known[0] is priority:
        made: Integers = known[1]
        return made
    found = unit_sequence(problem, priority, order)
    if usual:
        problem.worked_out["unit_sequence"] = (priority, found)
    return found


def _wide(problem: Problem, placement: Placement, plan: StepPlan) -> Placement:
    """The placement of the copies of a step in their strict order."""
    urgency = _urgency(plan, _sequence(problem, _priority(problem, placement), placement))
    order = {number: row.tolist() for number, row in enumerate(plan.rows)}
    return Placement(device=plan.device, priority=urgency, order=order)


def _urgency(plan: StepPlan, sequence: Integers) -> Integers:
    """Of transfers: earlier micro-batches first, then what comes earlier in the pass; sums and updates last."""
    copies = plan.copies
    units = len(sequence)
    number = np.where(copies.micro_batch < 0, int(copies.micro_batch.max()) + 1, copies.micro_batch)
    return -(number * units + copies.places(sequence))


def _arrays(problem: Problem, copies: StepCopies) -> ProblemArrays:
    """The step's arrays with the times that the problem has now; outputs leave once they are on the host."""
    base = problem.arrays
    key = f"step_arrays {id(copies)}"
    known = problem.worked_out.get(key)
    if isinstance(known, tuple) and known[0] is base and known[1] is copies:
        made: ProblemArrays = known[2]
        return made
    compiled = copies.problem.arrays
    types = base.sizes.types
    table = base.exec_ns.reshape(-1, types)[copies.unit_of]
    table[copies.unit_of < 0] = 0
    made = replace(compiled, exec_ns=table.reshape(-1), sizes=compiled.sizes._replace(outputs_stay=0))
    problem.worked_out[key] = (base, copies, made)
    return made
