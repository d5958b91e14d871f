"""A coarse problem: units joined to regions, whose parts are the units of a smaller problem with the same cluster.

Hafeez et al., "Towards optimal placement and scheduling of DNN operations with Pesto", Middleware 2021, section 3.3:
join operations until about 200 are left, never so that regions would wait for one another. Regions are stretches of one
depth-first order of the forward pass. A region has one part per phase, and its parts share a device: a solver can then
order the backward pass by itself.
"""

import heapq
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.graph_orders import strong_components
from opmark.leaderboards.search.groups import summed_run_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class CoarseProblem:
    """The smaller problem, and the number of its unit that each original unit belongs to."""

    problem: Problem
    of_unit: Integers


def coarse_problem(problem: Problem, at_most: int) -> CoarseProblem:
    """About `at_most` units, of which neighbours with the least work are joined first; fewer units stay as they are.

    Regions without a common device are not joined, and parts that would wait for each other fall apart again, so that
    more may be left. Raises `PlacementError` as `blocks_of` does.
    """
    if problem.arrays.units <= at_most:
        return CoarseProblem(problem=problem, of_unit=np.arange(problem.arrays.units))
    phases = sorted({unit.phase for unit in problem.units})
    region = _regions(problem, max(1, at_most // len(phases)))
    phase = [phases.index(unit.phase) for unit in problem.units]
    label = (region * len(phases) + np.array(phase, dtype=np.int64)).tolist()
    of_unit = _without_cycles(problem, label)
    return CoarseProblem(problem=_joined(problem, region, of_unit), of_unit=of_unit)


def stretches(work: list[float], able: list[npt.NDArray[np.bool_]], at_most: int) -> list[int]:
    """Per item of a row, the first item of its stretch; neighbours with the least work are joined first.

    Stretches without a common device (`able`, by device) are not joined.
    """
    count = len(work)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    heap: list[tuple[float, int, int]] = []

    def offer(left: int) -> None:
        """Queue a stretch and the next one if a device could run both."""
        if left >= 0 and after[left] < count and (able[left] & able[after[left]]).any():
            heapq.heappush(heap, (work[left] + work[after[left]], left, after[left]))

    for number in range(count):
        offer(number)
    alive, left_over = [True] * count, count
    while left_over > at_most and heap:
        total, left, right = heapq.heappop(heap)
        if not (alive[left] and alive[right]) or after[left] != right or total != work[left] + work[right]:
            continue  # One of the two has grown since.
        work[left], able[left], alive[right] = total, able[left] & able[right], False
        after[left] = after[right]
        if after[right] < count:
            before[after[right]] = left
        left_over -= 1
        offer(left)
        offer(before[left])
    found, own = [], 0
    for number in range(count):
        own = number if alive[number] else own
        found.append(own)
    return found


def _regions(problem: Problem, at_most: int) -> Integers:
    """The region of each unit."""
    blocks = blocks_of(problem)
    order = list(blocks.depth_first_orders[0])
    run = blocks.run_ns[order]
    work = np.where(run >= 0, run, 0).max(axis=1).astype(np.float64) + 1
    first = stretches(work.tolist(), [row >= 0 for row in run], at_most)
    of_block = np.empty(blocks.count, dtype=np.int64)
    of_block[order] = first
    return of_block[blocks.of_unit]


def _without_cycles(problem: Problem, label: list[int]) -> Integers:
    """Labels from 0 in the order of first units; parts that wait for each other fall apart into their units."""
    arrays = problem.arrays
    producer = np.repeat(arrays.tensor_producer, np.diff(arrays.consumer_offsets))
    inner = producer >= 0
    edges = list(zip(producer[inner].tolist(), arrays.consumer_units[inner].tolist(), strict=True))
    free = max(label) + 1
    while True:
        names = {name: number for number, name in enumerate(dict.fromkeys(label))}
        part = [names[name] for name in label]
        component = strong_components(len(names), {(part[a], part[b]) for a, b in edges if part[a] != part[b]})
        size = np.bincount(component)
        apart = [unit for unit, own in enumerate(part) if size[component[own]] > 1]
        if not apart:
            return np.array(part, dtype=np.int64)
        for unit in apart:
            label[unit], free = free, free + 1


def _joined(problem: Problem, region: Integers, of_unit: Integers) -> Problem:
    """The problem of the parts."""
    arrays = problem.arrays
    count = int(of_unit.max()) + 1
    members: list[list[int]] = [[] for _ in range(count)]
    for unit, part in enumerate(of_unit.tolist()):
        members[part].append(unit)
    units = tuple(_part(problem, row, f"part {number}", int(region[row[0]])) for number, row in enumerate(members))
    tensors = []
    parts, readers = of_unit.tolist(), arrays.consumer_units.tolist()
    for number, tensor in enumerate(problem.tensors):
        maker = int(arrays.tensor_producer[number])
        own = parts[maker] if maker >= 0 else -1
        first, last = arrays.consumer_offsets[number], arrays.consumer_offsets[number + 1]
        others = sorted({parts[reader] for reader in readers[first:last]} - {own})
        if others or tensor.output:
            names = tuple(units[other].name for other in others)
            tensors.append(replace(tensor, producer=units[own].name if maker >= 0 else "", consumers=names))
    return replace(problem, units=units, tensors=tuple(_once(tensors)), reference=None)


def _part(problem: Problem, members: list[int], name: str, region: int) -> Unit:
    """One unit for several: it takes their times, of which the simulator adds one device's dispatch again."""
    arrays = problem.arrays
    run = summed_run_ns(arrays.run_ns[members], np.zeros(len(members), dtype=np.int64), 1)[0]
    times: dict[str, int] = {}
    for device, ns in zip(problem.cluster.devices, run.tolist(), strict=True):
        if ns >= 0:
            times.setdefault(device.type, max(0, ns - device.dispatch_ns))
    own = [problem.units[unit] for unit in members]
    return Unit(
        name=name,
        exec_ns=times,
        weights=tuple(dict.fromkeys(weight for unit in own for weight in unit.weights)),
        workspace_bytes=max(unit.workspace_bytes for unit in own),
        colocation=f"region {region}",
        phase=own[0].phase,
        kind=own[0].kind,
    )


def _once(tensors: list[Tensor]) -> list[Tensor]:
    """Tensors that go the same way from part to part as one; inputs and outputs of the graph stay."""
    place: dict[tuple[str, tuple[str, ...]], int] = {}
    kept: list[Tensor] = []
    for tensor in tensors:
        key = tensor.producer, tensor.consumers
        if tensor.output or not tensor.producer or key not in place:
            if tensor.producer and not tensor.output:
                place[key] = len(kept)
            kept.append(tensor)
            continue
        known = kept[place[key]]
        paid = {
            kind: known.boundary_ns.get(kind, 0) + tensor.boundary_ns.get(kind, 0)
            for kind in {**known.boundary_ns, **tensor.boundary_ns}
        }
        size = known.size_bytes + tensor.size_bytes
        kept[place[key]] = replace(known, size_bytes=size, boundary_ns=paid)
    return kept
