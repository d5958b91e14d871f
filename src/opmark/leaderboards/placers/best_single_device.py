"""Everything on the one device that finishes first: the zero line of every board."""

from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class BestSingleDevice(Placer):
    """What a device cannot run goes to the fastest that can; what fits nowhere alone is filled by memory."""

    summary = "everything on the fastest device that holds it"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest of one placement per device."""
        del budget_s, seed
        device, _ = best_single_device(problem)
        return solution_of(problem, Placement(device=device), placer="best-single-device")


PLACER = BestSingleDevice()
