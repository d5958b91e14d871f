"""Round robin: units in topological order, one device after the other."""

import numpy as np

from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import Placer


class RoundRobin(Placer):
    """Balances counts; ignores time and transfers."""

    summary = "units in topological order, dealt out in turn"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Give each colocation class the next device in turn that can run it."""
        del budget_s, seed
        groups = groups_of(problem)
        chosen = []
        turn = 0
        for row in groups.allowed:
            able = np.flatnonzero(row)
            number = int(able[np.searchsorted(able, turn) % len(able)])
            chosen.append(number)
            turn = (number + 1) % len(row)
        return solution_of(
            problem, held_together(problem, Placement(device=groups.spread(chosen))), placer="round-robin"
        )


PLACER = RoundRobin()
