"""The best placement a placer has found so far, judged by the simulator, and the clock it has to keep to."""

import time
from fractions import Fraction

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.contiguity import returning_unit
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.anytime import listening, offer
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.simulator.charges import missed_limit
from opmark.leaderboards.simulator.simulate import fits, simulate

# Answers are handed over at most this often per budget: writing one takes time too.
OFFERS_PER_BUDGET = 20


class Incumbent:
    """Keeps what is cheapest. Placements must keep classes together; everything else is checked here."""

    def __init__(self, problem: Problem, placer: str, budget_s: float) -> None:
        self.problem = problem
        self.placer = placer
        self.begun = time.monotonic()
        self.deadline = self.begun + budget_s
        self.best: Placement | None = None
        self.value: Fraction | None = None
        self._pause_s = budget_s / OFFERS_PER_BUDGET
        self._offered = self.begun - self._pause_s
        self._handed_over: Placement | None = None

    @property
    def left_s(self) -> float:
        """Seconds until the budget is spent."""
        return self.deadline - time.monotonic()

    @property
    def spent_share(self) -> float:
        """The share of the budget that is spent, from 0 to 1."""
        return min(1.0, 1.0 - self.left_s / max(1e-9, self.deadline - self.begun))

    def value_of(self, placement: Placement) -> Fraction | None:
        """The exact cost of a placement, None where it is invalid."""
        if self.problem.contiguous and returning_unit(self.problem, placement.device) is not None:
            return None
        try:
            schedule = simulate(self.problem, placement)
        except PlacementError:
            return None
        if not fits(self.problem, schedule) or missed_limit(self.problem, placement, schedule):
            return None
        return schedule.value

    def consider(self, placement: Placement) -> bool:
        """Keep and offer a placement if it is the best so far, made contiguous where it must be; True if it was."""
        placement = held_together(self.problem, placement)
        value = self.value_of(placement)
        if value is None or (self.value is not None and value >= self.value):
            return False
        self.best, self.value = placement, value
        if time.monotonic() - self._offered >= self._pause_s:
            self._hand_over()
        return True

    def _hand_over(self) -> None:
        if self.best is not None and self.best is not self._handed_over:
            self._handed_over, self._offered = self.best, time.monotonic()
            offer(self.solution())

    def consider_placer(self, placer: Placer, seed: int, *, share: float = 1.0) -> Placement | None:
        """Let another placer try in a share of the time that is left; None where it finds nothing."""
        self._hand_over()  # who knows when it comes back
        try:
            # what it offers on its way may be worse than what is known, and the last offer counts
            with listening(None):
                answer = placer.place(self.problem, budget_s=max(0.0, self.left_s * share), seed=seed)
            placement = placement_of(self.problem, answer)
        except PlacementError:
            return None
        self.consider(placement)
        return placement

    def solution(self) -> Solution:
        """The best so far. Raises `PlacementError` where nothing was valid."""
        if self.best is None:
            kept = " and keeps the limits" if self.problem.limits else ""
            raise PlacementError(f"nothing that was tried fits into memory{kept}")
        return solution_of(self.problem, self.best, placer=self.placer)
