"""Placements from a constraint program: solve an interval model for some time and read its solution."""

import time
from typing import Any

import numpy as np

from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.states import spread_ranks

# (tensor, source, destination) combinations beyond which the model would only be built.
PASSAGES_AT_MOST = 40_000
# Of the time that is left, for building a model; and of the time that this took, for the solver to read it.
BUILD_SHARE, READ_SHARE = 0.6, 0.3


def passages(problem: Problem) -> int:
    """The combinations of a tensor, its source and a destination: what the size of a model grows with."""
    return len(problem.arrays.tensor_bytes) * problem.arrays.devices * (problem.arrays.devices - 1)


def solved(
    model: IntervalModel, cp_model: Any, *, deadline: float, known: Placement | None, seed: int
) -> tuple[Integers, Integers | None] | None:
    """A device per unit, and for latency a start per unit; None where the solver finds nothing by the `deadline`.

    The solver starts from `known`. The deadline is as `time.monotonic`.
    """
    begun = time.monotonic()
    left_s = deadline - begun
    if not model.build(begun + BUILD_SHARE * left_s):
        return None
    if known is not None:
        model.hint(known)
    built_s = time.monotonic() - begun
    seconds = left_s - built_s * (1 + READ_SHARE)
    if seconds <= 0:
        return None
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model.model) not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None
    chosen = [next(device for device, literal in row.items() if solver.value(literal)) for row in model.on]
    device = model.groups.spread(chosen)
    if not model.latency:
        return device, None
    return device, np.array([solver.value(start) for start in model.start], dtype=np.int64)


def timed_placements(problem: Problem, device: Integers, starts: Integers | None) -> list[Placement]:
    """The placement with the default priorities, with priorities by start, and in the strict order of the starts."""
    found = [Placement(device=device)]
    if starts is not None:
        topological = problem.arrays.topological
        position = np.empty(len(topological), dtype=np.int64)
        position[topological] = np.arange(len(topological))
        by_start = np.lexsort((position, starts))
        rank = np.empty(len(starts), dtype=np.int64)
        rank[by_start] = -np.arange(len(starts))
        priority = spread_ranks(problem, rank)
        rows: dict[int, list[int]] = {number: [] for number in range(problem.arrays.devices)}
        for unit in by_start.tolist():
            rows[int(device[unit])].append(unit)
        found += [Placement(device=device, priority=priority)]
        found += [Placement(device=device, priority=priority, order=rows)]
    return found
