"""A random device for every unit: the row that every algorithm must beat."""

import numpy as np

from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import Placer


class RandomPlacer(Placer):
    """Draws evenly from the devices that can run a colocation class."""

    summary = "a random device for every unit"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the draw of `seed`."""
        del budget_s
        groups = groups_of(problem)
        generator = np.random.default_rng(seed)
        chosen = [generator.choice(np.flatnonzero(row)) for row in groups.allowed]
        return solution_of(problem, held_together(problem, Placement(device=groups.spread(chosen))), placer="random")


PLACER = RandomPlacer()
