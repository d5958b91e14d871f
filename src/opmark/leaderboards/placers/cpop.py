"""CPOP, Critical Path On a Processor.

Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.2: priority is upward plus downward rank; the units of the
critical path share the device that runs all of them fastest, every other unit goes where it finishes first.
"""

import heapq

import numpy as np

from opmark.leaderboards.list_schedule import ListSchedule, mean_travel_ns
from opmark.leaderboards.placement import Solution, solution_of
from opmark.leaderboards.placer import Placer
from opmark.leaderboards.placers.heft import cheapest, mean_upward_rank
from opmark.leaderboards.problem import Problem


def cpop_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, list[int]]:
    """The schedule CPOP builds and its priorities, in ns; without `contention` it is the paper's algorithm."""
    arrays = problem.arrays
    schedule = ListSchedule(problem, contention=contention)
    up, travel, mean = mean_upward_rank(schedule).tolist(), mean_travel_ns(schedule).tolist(), _mean_ns(schedule)
    edges = _edges(problem)
    down = [0] * arrays.units
    for unit in arrays.topological.tolist():
        for tensor, reader in edges[unit]:
            down[reader] = max(down[reader], down[unit] + mean[unit] + travel[tensor])
    priority = [a + b for a, b in zip(up, down, strict=True)]
    path = _critical_path(priority, edges, down)
    table = schedule.groups.run_ns[schedule.groups.of_unit[path]]
    able = (table >= 0).all(axis=0)
    chosen = int(np.where(able, table.sum(axis=0), np.iinfo(np.int64).max).argmin()) if able.any() else -1
    on_path = set(path)
    waiting = [0] * arrays.units
    for row in edges:
        for _, reader in row:
            waiting[reader] += 1
    ready = [(-priority[unit], unit) for unit in range(arrays.units) if not waiting[unit]]
    heapq.heapify(ready)
    while ready:
        _, unit = heapq.heappop(ready)
        device = min((end + schedule.return_ns(unit, device), device) for device, _, end in schedule.options(unit))[1]
        if unit in on_path and chosen in schedule.allowed(unit):
            device = chosen
        schedule.put(unit, device)
        for _, reader in edges[unit]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (-priority[reader], reader))
    return schedule, priority


def _mean_ns(schedule: ListSchedule) -> list[int]:
    table = schedule.problem.arrays.run_ns
    able = table >= 0
    mean: list[int] = np.rint(np.where(able, table, 0).sum(axis=1) / able.sum(axis=1)).astype(np.int64).tolist()
    return mean


def _edges(problem: Problem) -> list[list[tuple[int, int]]]:
    """Per unit, (tensor, reader) of everything it makes."""
    arrays = problem.arrays
    found: list[list[tuple[int, int]]] = [[] for _ in range(arrays.units)]
    offsets = arrays.consumer_offsets.tolist()
    for tensor, producer in enumerate(arrays.tensor_producer.tolist()):
        if producer >= 0:
            readers = arrays.consumer_units[offsets[tensor] : offsets[tensor + 1]].tolist()
            found[producer] += [(tensor, reader) for reader in readers]
    return found


def _critical_path(priority: list[int], edges: list[list[tuple[int, int]]], down: list[int]) -> list[int]:
    """From the source of highest priority along the readers of highest priority."""
    sources = [unit for unit, rank in enumerate(down) if rank == 0]
    unit = max(sources, key=lambda number: (priority[number], -number))
    path = [unit]
    while edges[unit]:
        unit = max((reader for _, reader in edges[unit]), key=lambda number: (priority[number], -number))
        path.append(unit)
    return path


class Cpop(Placer):
    """List scheduling with the critical path kept together."""

    summary = "critical path on one device, the rest by earliest finish (Topcuoglu 2002)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """CPOP's schedule."""
        del budget_s, seed
        schedule, priority = cpop_schedule(problem)
        placement = schedule.placement(np.array(priority, dtype=np.int64))
        return solution_of(problem, cheapest(problem, placement), placer="cpop")


PLACER = Cpop()
