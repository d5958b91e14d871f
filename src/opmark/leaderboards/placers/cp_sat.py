"""An exact placement by constraint programming with OR-tools (extra `solvers`): who runs where, and when.

Perron, Didier, Gay, "The CP-SAT-LP solver", CP 2023. Units are optional intervals on the slots of a device, hops of
transfers are optional intervals on the port of a link; one transfer per tensor and destination. For throughput only the
loads of devices and ports count, for dnn-partitioning's maximum load what every device does and exchanges. What must be
contiguous is.
"""

import time
from contextlib import suppress
from typing import Any

import numpy as np

from opmark.core.errors import MissingExtraError
from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.bounds.relaxation import profile_of
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.search.states import spread_ranks

# (tensor, source, destination) combinations beyond which the model would only be built.
PASSAGES_AT_MOST = 40_000
BUDGET_SHARE = 0.9
# Of the time that is left, for building a model; and of the time that this took, for the solver to read it.
BUILD_SHARE, READ_SHARE = 0.6, 0.3
# Of the budget, for the dynamic program that the solver is to beat.
PROGRAM_SHARE = 0.4


class CpSat(Placer):
    """Optimal where the solver proves it in time; else its best, or the heuristic answer it was given as a hint."""

    summary = "constraint programming over devices, starts and transfers (OR-tools CP-SAT, extra solvers)"

    def prepare(self) -> None:
        """Import the solver, where it is installed."""
        with suppress(ImportError):
            import ortools.sat.python.cp_model  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The solver's best. Raises `MissingExtraError` without OR-tools."""
        try:
            from ortools.sat.python import cp_model
        except ImportError as error:
            raise MissingExtraError("cp-sat needs OR-tools", hint="pip install 'opmark[solvers]'") from error
        incumbent = Incumbent(problem, "cp-sat", budget_s * BUDGET_SHARE)
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        arrays = problem.arrays
        rules = profile_named(problem.profile)
        exchanged = profile_of(problem) == "maxload_serial"
        if problem.contiguous or exchanged:
            incumbent.consider_placer(PLACERS.load("dnn-partitioning-dp"), seed, share=PROGRAM_SHARE)
        else:
            for placer in map(PLACERS.load, ("heft", "cpop", "peft")):
                incumbent.consider_placer(placer, seed)
        passages = len(arrays.tensor_bytes) * arrays.devices * (arrays.devices - 1)
        known = (rules.model is None or exchanged) and problem.objective != "cost"
        if known and passages <= PASSAGES_AT_MOST and incumbent.left_s > 0:
            _solve(IntervalModel(problem, cp_model, contention=rules.contention), cp_model, incumbent, seed)
        return incumbent.solution()


PLACER = CpSat()


def _solve(model: IntervalModel, cp_model: Any, incumbent: Incumbent, seed: int) -> None:
    """Give the incumbent what the solver finds in the time that building the model leaves."""
    begun_s = incumbent.left_s
    if not model.build(time.monotonic() + BUILD_SHARE * begun_s):
        return
    if incumbent.best is not None:
        model.hint(incumbent.best)
    built_s = begun_s - incumbent.left_s
    seconds = incumbent.left_s - READ_SHARE * built_s
    if seconds <= 0:
        return
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model.model) in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        for placement in _placements(model, solver):
            incumbent.consider(placement)


def _placements(model: IntervalModel, solver: Any) -> list[Placement]:
    """The solution with the default priorities, with its own, and in its strict order."""
    chosen = [next(device for device, literal in row.items() if solver.value(literal)) for row in model.on]
    device = model.groups.spread(chosen)
    found = [Placement(device=device)]
    if model.latency:
        starts = np.array([solver.value(start) for start in model.start], dtype=np.int64)
        topological = model.problem.arrays.topological
        position = np.empty(len(topological), dtype=np.int64)
        position[topological] = np.arange(len(topological))
        by_start = np.lexsort((position, starts))
        rank = np.empty(len(starts), dtype=np.int64)
        rank[by_start] = -np.arange(len(starts))
        priority = spread_ranks(model.problem, rank)
        rows: dict[int, list[int]] = {number: [] for number in range(model.problem.arrays.devices)}
        for unit in by_start.tolist():
            rows[int(device[unit])].append(unit)
        found += [Placement(device=device, priority=priority)]
        found += [Placement(device=device, priority=priority, order=rows)]
    return found
