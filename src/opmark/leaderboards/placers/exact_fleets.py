"""Every fleet, the one of least bound first, each placed by constraint programming; small pools are solved exactly.

A fleet whose bound is no better than the best answer is skipped. The answer is optimal where time is left when all
fleets are done and the solver proved each of its placements.
"""

from contextlib import suppress

from opmark.core.errors import MissingExtraError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.renting.fleet_hunt import THOROUGH, FleetHunt

SOLVER = "cp-sat"
# A fleet gets this share of the time that is left, and at least the budget over so many.
SHARE, TRIES = 0.3, 40


class ExactFleets(Placer):
    """Needs OR-tools, as its inner placer does."""

    summary = "all fleets by their bounds, each placed by constraint programming (OR-tools CP-SAT, extra solvers)"
    rents = True

    def prepare(self) -> None:
        """Import the solver, where it is installed."""
        with suppress(MissingExtraError):
            PLACERS.load(SOLVER).prepare()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the best placement. Raises `MissingExtraError` without OR-tools."""
        hunt = FleetHunt(problem, "exact-fleets", budget_s)
        fleets = sorted(hunt.pool.fleets(), key=lambda fleet: (hunt.rank(hunt.optimistic(fleet)), fleet))
        for fleet in fleets:
            if hunt.over:
                break
            if not hunt.hopeless(fleet):
                hunt.look(fleet, THOROUGH[hunt.kind], seed=seed)
        for fleet in fleets if hunt.pool.priced else ():
            if hunt.over:
                break
            if not hunt.hopeless(fleet):
                seconds = max(SHARE * hunt.incumbent.left_s, budget_s / TRIES)
                hunt.look(fleet, (SOLVER,), seconds=seconds, seed=seed)
        return hunt.solution()


PLACER = ExactFleets()
