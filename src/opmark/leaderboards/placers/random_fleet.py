"""Random fleets until one meets the goal: the row that every way of choosing devices must beat."""

import numpy as np

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt


class RandomFleet(Placer):
    """Draws evenly among all fleets that can run the network; the first that meets the goal is the answer."""

    summary = "the first random fleet that meets the goal"
    rents = True

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the placement on that fleet. Raises `PlacementError` where none does in time."""
        hunt = FleetHunt(problem, "random-fleet", budget_s)
        fleets = list(hunt.pool.fleets())
        for place in np.random.default_rng(seed).permutation(len(fleets)).tolist():
            if hunt.over or hunt.meets_goal(hunt.look(fleets[place], seed=seed)):
                break
        return hunt.solution()


PLACER = RandomFleet()
