"""Pesto: a coarsened graph, placed and scheduled at once by an exact program in which links are machines too.

Hafeez, Sun, Gandhi, Liu, "Towards optimal placement and scheduling of DNN operations with Pesto", Middleware 2021:
section 3.2 has the program (a place and a start for every operation; operations of one device, and transfers of one
link, never overlap; memory holds what is placed), section 3.3 the coarsening to about 200 operations. The paper hands
the program to CPLEX; here OR-tools' CP-SAT (extra `solvers`) solves it, with intervals in place of big-M rows, and
starts from the best single device. For throughput it minimises the load of the busiest device or link.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from opmark.core.errors import MissingExtraError, PlacementError
from opmark.leaderboards.bounds.interval_answers import PASSAGES_AT_MOST, passages, solved, timed_placements
from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.bounds.relaxation import is_load, profile_of
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.cuts.coarse_problem import CoarseProblem, coarse_problem
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device

# Section 3.3: the operations that the coarse graph keeps, and fewer where their transfers would be too many.
OPERATIONS = (200, 100, 50, 25)
BUDGET_SHARE = 0.9


class Pesto(Placer):
    """As good as the coarsening allows; the solver's best solution counts when time is up."""

    summary = "coarsened graph placed and ordered by an exact program with busy links (Pesto, Middleware'21)"
    paper = Placer.cites(
        "Hafeez, Sun, Gandhi, Liu: Towards optimal placement and scheduling of DNN operations with Pesto, Middleware",
        2021,
    )

    def prepare(self) -> None:
        """Import the solver, where it is installed."""
        with suppress(ImportError):
            import ortools.sat.python.cp_model  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the solver's placement, or the best single device where that is better.

        Raises `MissingExtraError` without OR-tools, `PlacementError` where nothing fits into memory.
        """
        try:
            from ortools.sat.python import cp_model
        except ImportError as error:
            raise MissingExtraError("pesto needs OR-tools", hint="pip install 'opmark[solvers]'") from error
        incumbent = Incumbent(problem, "pesto", budget_s * BUDGET_SHARE)
        single = None
        with suppress(PlacementError):  # the solver may find room where a filling does not
            single = best_single_device(problem)[0]
            incumbent.consider(Placement(device=single))
        # Section 3.3: coarsen the graph.
        coarse = coarsened(problem)
        if coarse is not None and incumbent.left_s > 0:
            # Section 3.2: place and schedule the coarse graph.
            model = IntervalModel(coarse.problem, cp_model, contention=profile_named(coarse.problem.profile).contention)
            known = None if single is None else _on_parts(coarse, single)
            answer = solved(model, cp_model, deadline=incumbent.deadline, known=known, seed=seed)
            for placement in () if answer is None else _of_units(problem, coarse, *answer):
                incumbent.consider(placement)
        return incumbent.solution()


PLACER = Pesto()


def coarsened(problem: Problem) -> CoarseProblem | None:
    """The coarse graph with as many operations as the solver can read; None where even the fewest are too many.

    A latency is that of one pass: requests and micro-batches are left to the simulator.
    """
    exchanged = profile_of(problem) == "maxload_serial"
    published = profile_named(problem.profile).model is not None and not exchanged
    posed = replace(
        problem,
        objective="throughput" if is_load(problem) else "latency",
        unit="ns",
        arrivals=(),
        micro_batches=0,
        replication=False,
        profile="opsim1" if published else problem.profile,
        reference=None,
    )
    for at_most in OPERATIONS:
        coarse = coarse_problem(posed, at_most)
        if passages(coarse.problem) <= PASSAGES_AT_MOST:
            return coarse
    return None


def _on_parts(coarse: CoarseProblem, device: Integers) -> Placement | None:
    """A device per unit as a device per part, if no part is torn."""
    of_part = np.zeros(coarse.problem.arrays.units, dtype=np.int64)
    of_part[coarse.of_unit] = device
    return Placement(device=of_part) if bool((of_part[coarse.of_unit] == device).all()) else None


def _of_units(problem: Problem, coarse: CoarseProblem, device: Integers, starts: Integers | None) -> list[Placement]:
    """The answer for the units: they run where their part does, in the order of its start."""
    every = starts if starts is None else starts[coarse.of_unit]
    return timed_placements(problem, device[coarse.of_unit], every)
