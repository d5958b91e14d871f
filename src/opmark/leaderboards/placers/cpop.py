"""CPOP, Critical Path On a Processor.

Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.2: priority is upward plus downward rank; the units of the
critical path share the device that runs all of them fastest, every other unit goes where it finishes first.
"""

import numpy as np

from opmark.leaderboards.placers.heft import cheapest, mean_ns, mean_upward_rank
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.lists.list_schedule import (
    BuiltSchedule,
    build_in_sequence,
    mean_travel_ns,
    ready_sequence,
)
from opmark.leaderboards.search.placer import Placer


def cpop_schedule(problem: Problem, *, contention: bool = True) -> tuple[BuiltSchedule, list[int]]:
    """The schedule CPOP builds and its priorities, in ns; without `contention` it is the paper's algorithm."""
    arrays = problem.arrays
    up, travel, mean = mean_upward_rank(problem), mean_travel_ns(problem).tolist(), mean_ns(problem).tolist()
    edges = _edges(problem)
    down = [0] * arrays.units
    for unit in arrays.topological.tolist():
        for tensor, reader in edges[unit]:
            down[reader] = max(down[reader], down[unit] + mean[unit] + travel[tensor])
    priority = (up + down).tolist()
    path = _critical_path(priority, edges, down)
    groups = groups_of(problem)
    table = groups.run_ns[groups.of_unit[path]]
    able = (table >= 0).all(axis=0)
    forced = np.full(arrays.units, -1, dtype=np.int64)
    if able.any():
        forced[path] = np.where(able, table.sum(axis=0), np.iinfo(np.int64).max).argmin()
    sequence = ready_sequence(problem, np.array(priority))
    return build_in_sequence(problem, sequence, contention=contention, forced=forced), priority


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
