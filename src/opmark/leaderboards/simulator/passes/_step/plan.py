"""The device and the order of every copy in a training step: a schedule's ticks on the stages of a placement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import PHASES
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.pipeline_schedule import PIPELINE_SCHEDULES, PipelineSchedule
from opmark.leaderboards.simulator.passes._step.copies import StepCopies, step_copies

Reach = npt.NDArray[np.bool_]

# Comes after every tick of a forward or backward pass.
AFTER_ALL = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """A device per copied unit and the copies of each device in their strict order.

    `lanes` are devices per unit of the problem, per pipeline; `blocks`, per device, are its passes in order:
    (pipeline, 1 for backward).
    """

    copies: StepCopies
    device: Integers
    rows: tuple[Integers, ...]
    lanes: tuple[Integers, ...]
    blocks: tuple[tuple[tuple[int, int], ...], ...]


def stages_behind(problem: Problem, device: Integers) -> Integers:
    """Per device, the number of devices from it to the end of the pipeline, itself included; 0 if nothing runs on it.

    A device stands behind another that sends it something on the way forward, or gets something from it on the way
    back; two that stand behind one another count for both.
    """
    found: Integers = _reach(problem, device).sum(axis=1)
    return found


def _reach(problem: Problem, device: Integers) -> Reach:
    ends = _edges(problem)
    count = problem.arrays.devices
    reach = np.zeros((count, count), dtype=bool)
    reach[device[ends[0]], device[ends[1]]] = True
    used = np.zeros(count, dtype=bool)
    used[device[_in_passes(problem)]] = True
    reach[used, used] = True
    reach &= used[:, None] & used[None, :]
    for middle in np.flatnonzero(used):
        reach |= reach[:, middle, None] & reach[None, middle, :]
    return reach


def plan_step(
    problem: Problem,
    device: Integers,
    sequence: Integers,
    *,
    schedule: str,
    behind: Integers | None = None,
) -> StepPlan:
    """The step of one placement under the schedule of that name.

    `sequence` is each unit's place within a pass; `behind` is worked out if it is not given. Raises `PlacementError`
    if a schedule in both directions has an odd number of stages, or stages that need one another.
    """
    rules = PIPELINE_SCHEDULES.load(schedule)
    reach = None
    if behind is None:
        reach = _reach(problem, device)
        behind = reach.sum(axis=1)
    used = np.flatnonzero(behind > 0)
    stages = len(used)
    lanes: tuple[Integers, ...] = (device,)
    behinds: tuple[Integers, ...] = (behind,)
    if rules.both_ways:
        lanes, behinds = _both_ways(device, used, _reach(problem, device) if reach is None else reach, schedule)
    count = problem.micro_batches
    directions, first = _directions(rules, count, stages)
    copies = step_copies(problem, directions, first)
    lanes = lanes[: len(first)]
    table = np.array(lanes)
    where = table[copies.lane, copies.like]
    ticks = np.array([_ticks(schedule, count, int(number), stages) for number in range(stages + 1)])
    stage = np.array(behinds)[copies.lane, where]
    backward = _phases(problem)[copies.like] == 1
    once = copies.micro_batch < 0
    tick = np.where(once, AFTER_ALL, ticks[stage, np.where(once, 0, copies.micro_batch), backward.astype(np.int64)])
    turn = copies.places(sequence) * 2 + (copies.unit_of >= 0)
    order = np.lexsort((np.arange(len(where)), turn, tick, where))
    cuts = np.searchsorted(where[order], np.arange(problem.arrays.devices + 1))
    rows = tuple(order[a:b] for a, b in pairwise(cuts.tolist()))
    blocks = tuple(
        tuple(_blocks(schedule, directions, tuple(int(row[number]) for row in behinds), stages))
        for number in range(problem.arrays.devices)
    )
    return StepPlan(copies=copies, device=where, rows=rows, lanes=lanes, blocks=blocks)


def unit_sequence(problem: Problem, priority: Integers, order: Mapping[int, Sequence[int]] | None = None) -> Integers:
    """Each unit's place in a pass: the most urgent of the units whose inputs are there comes next; `order` is kept."""
    arrays = problem.arrays
    after: list[list[int]] = [[] for _ in range(arrays.units)]
    for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
        if maker >= 0:
            after[maker] += arrays.consumer_units[
                arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]
            ].tolist()
    phase = _phases(problem).tolist()
    for row in (order or {}).values():
        for kind in range(len(PHASES)):
            for before, later in pairwise(unit for unit in row if phase[unit] == kind):
                after[before].append(later)
    waiting = np.bincount([unit for row in after for unit in row], minlength=arrays.units).tolist()
    urgency = priority.tolist()
    ready = [(-urgency[unit], unit) for unit in range(arrays.units) if not waiting[unit]]
    ready.sort()
    found = np.zeros(arrays.units, dtype=np.int64)
    for place in range(arrays.units):
        _, unit = heappop(ready)
        found[unit] = place
        for later in after[unit]:
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, (-urgency[later], later))
    return found


def _both_ways(
    device: Integers, used: Integers, reach: Reach, schedule: str
) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    """Devices per unit, and stages behind each device, of a pipeline and its mirror image."""
    stages = len(used)
    if stages % 2:
        raise PlacementError(f"the schedule {schedule!r} needs an even number of stages, not {stages}")
    if (reach & reach.T & ~np.eye(len(reach), dtype=bool)).any():
        raise PlacementError(f"the schedule {schedule!r} needs stages that follow one another: a path comes back")
    line = sorted(used.tolist(), key=lambda number: (-int(reach[number].sum()), number))
    mirror = np.arange(len(reach))
    down, up = np.zeros(len(reach), dtype=np.int64), np.zeros(len(reach), dtype=np.int64)
    for place, number in enumerate(line):
        mirror[number] = line[stages - 1 - place]
        down[number], up[number] = stages - place, place + 1
    return (device, mirror[device]), (down, up)


def _directions(rules: PipelineSchedule, count: int, stages: int) -> tuple[list[int], list[int]]:
    """The pipeline of every micro-batch, and the micro-batch of each pipeline that comes back first."""
    directions = [rules.direction(number, count, stages) for number in range(count)]

    def back(number: int) -> int:
        return rules.tick(number, count, backward=True, behind=1, stages=stages)

    first = [
        min((n for n in range(count) if directions[n] == lane), key=lambda n: (back(n), n))
        for lane in sorted(set(directions))
    ]
    return directions, first


@cache
def _ticks(schedule: str, count: int, behind: int, stages: int) -> tuple[tuple[int, int], ...]:
    """Per micro-batch, the ticks of its forward and of its backward pass on one stage."""
    rules = PIPELINE_SCHEDULES.load(schedule)
    return tuple(
        (
            rules.tick(number, count, backward=False, behind=behind, stages=stages),
            rules.tick(number, count, backward=True, behind=behind, stages=stages),
        )
        for number in range(count)
    )


def _blocks(schedule: str, directions: Sequence[int], behinds: tuple[int, ...], stages: int) -> list[tuple[int, int]]:
    """The passes of whole micro-batches that a device runs, in order."""
    found = []
    for number, lane in enumerate(directions):
        if behinds[lane]:
            ticks = _ticks(schedule, len(directions), behinds[lane], stages)[number]
            found += [(ticks[0], lane, 0), (ticks[1], lane, 1)]
    return [(lane, backward) for _, lane, backward in sorted(found)]


def _phases(problem: Problem) -> Integers:
    known = problem.worked_out.get("phases")
    if not isinstance(known, np.ndarray):
        known = np.array([PHASES.index(unit.phase) for unit in problem.units], dtype=np.int64)
        problem.worked_out["phases"] = known
    return known


def _in_passes(problem: Problem) -> Integers:
    return np.flatnonzero(_phases(problem) < 2)


def _edges(problem: Problem) -> tuple[Integers, Integers]:
    """Pairs of units of one phase, the one nearer to the pipeline's beginning first."""
    known = problem.worked_out.get("pipeline_edges")
    if not isinstance(known, tuple):
        arrays, phase = problem.arrays, _phases(problem)
        maker = np.repeat(arrays.tensor_producer, np.diff(arrays.consumer_offsets))
        reader = arrays.consumer_units
        made = maker >= 0
        forward = made & (phase[maker] == 0) & (phase[reader] == 0)
        back = made & (phase[maker] == 1) & (phase[reader] == 1)
        known = (
            np.concatenate([maker[forward], reader[back]]),
            np.concatenate([reader[forward], maker[back]]),
        )
        problem.worked_out["pipeline_edges"] = known
    return known
