"""The best answer over several choices of splits, each judged on the problem that it leads to."""

import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.decisions.decided import chosen_splits
from opmark.leaderboards.problem.decisions.splitting import split_problem
from opmark.leaderboards.problem.placement import Placement, Solution, SplitChoice, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.anytime import offer
from opmark.leaderboards.search.incumbent import OFFERS_PER_BUDGET, Incumbent

Choices = Mapping[str, SplitChoice]
# Rewritten problems are kept up to this number, since searches come back to them.
KEPT = 64


def ways(problem: Problem) -> dict[str, list[SplitChoice]]:
    """The splits that each unit offers, for units that offer any and share their device with no other."""
    found = {}
    for unit in problem.units:
        choices = [SplitChoice(axis=split.axis, parts=split.parts) for split in unit.splits]
        if choices and not problem.updated_weights.intersection(unit.weights):
            found[unit.name] = choices
    return found


class SplitAnswers:
    """Keeps what is cheapest among placements of the problem and of its split forms, and the time that is left."""

    def __init__(self, problem: Problem, placer: str, budget_s: float) -> None:
        self.problem, self.placer = problem, placer
        self.deadline = time.monotonic() + budget_s
        self.best: Solution | None = None
        self.value: Fraction | None = None
        self._pause_s = budget_s / OFFERS_PER_BUDGET
        self._offered = -self._pause_s
        self._known: dict[tuple[tuple[str, str, int], ...], Problem] = {(): problem}

    @property
    def left_s(self) -> float:
        """Seconds until the budget is spent."""
        return self.deadline - time.monotonic()

    def posed(self, choices: Choices) -> Problem:
        """The problem with these splits. Raises `PlacementError` for a split that the problem does not offer."""
        key = tuple(sorted((name, choice.axis, choice.parts) for name, choice in choices.items()))
        if key not in self._known:
            if len(self._known) > KEPT:
                self._known = {(): self.problem}
            self._known[key] = split_problem(self.problem, chosen_splits(self.problem, choices))
        return self._known[key]

    def consider(self, choices: Choices, placement: Placement) -> bool:
        """Keep and offer a placement of the split problem if it is the best answer so far; True if it was."""
        posed = self.posed(choices)
        value = Incumbent(posed, self.placer, 0.0).value_of(placement)
        if value is None or (self.value is not None and value >= self.value):
            return False
        answer = solution_of(posed, placement, placer=self.placer)
        self.best, self.value = replace(answer, splits=dict(choices) or None), value
        if time.monotonic() - self._offered >= self._pause_s:
            self._offered = time.monotonic()
            offer(self.best)
        return True

    def solution(self) -> Solution:
        """The best so far. Raises `PlacementError` where nothing was valid."""
        if self.best is None:
            raise PlacementError("nothing that was tried fits into memory")
        return self.best
