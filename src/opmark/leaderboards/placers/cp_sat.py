"""An exact placement by constraint programming with OR-tools (extra `solvers`): who runs where, and when.

Perron, Didier, Gay, "The CP-SAT-LP solver", CP 2023. Units are optional intervals on the slots of a device, hops of
transfers are optional intervals on the port of a link; one transfer per tensor and destination. For throughput only the
loads of devices and ports count, for dnn-partitioning's maximum load what every device does and exchanges. What must be
contiguous is.
"""

from contextlib import suppress

from opmark.core.errors import MissingExtraError
from opmark.leaderboards.bounds.interval_answers import PASSAGES_AT_MOST, passages, solved, timed_placements
from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.bounds.relaxation import profile_of
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.single import best_single_device

BUDGET_SHARE = 0.9
# Of the budget, for the dynamic program that the solver is to beat.
PROGRAM_SHARE = 0.4


class CpSat(Placer):
    """Optimal where the solver proves it in time; else its best, or the heuristic answer it was given as a hint."""

    summary = "constraint programming over devices, starts and transfers (OR-tools CP-SAT, extra solvers)"
    paper = Placer.cites(
        "Perron, Didier, Gay: The CP-SAT-LP solver, CP",
        2023,
        link="https://doi.org/10.4230/LIPIcs.CP.2023.3",
        code="https://github.com/google/or-tools",
    )

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
        rules = profile_named(problem.profile)
        exchanged = profile_of(problem) == "maxload_serial"
        if problem.contiguous or exchanged:
            incumbent.consider_placer(PLACERS.load("dnn-partitioning-dp"), seed, share=PROGRAM_SHARE)
        else:
            for placer in map(PLACERS.load, ("heft", "cpop", "peft")):
                incumbent.consider_placer(placer, seed)
        known = (rules.model is None or exchanged) and problem.objective in {"latency", "throughput"}
        if known and passages(problem) <= PASSAGES_AT_MOST and incumbent.left_s > 0:
            model = IntervalModel(problem, cp_model, contention=rules.contention)
            answer = solved(model, cp_model, deadline=incumbent.deadline, known=incumbent.best, seed=seed)
            for placement in () if answer is None else timed_placements(problem, *answer):
                incumbent.consider(placement)
        return incumbent.solution()


PLACER = CpSat()
