"""The best single device: the zero line of every board."""

from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class BestSingleDevice(Placer):
    """Units that the device cannot run go to their fastest one; without a device large enough, memory is filled."""

    summary = "everything on the fastest device that holds it"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the cheapest of one placement per device."""
        del budget_s, seed
        device, _ = best_single_device(problem)
        return solution_of(problem, Placement(device=device), placer="best-single-device")


PLACER = BestSingleDevice()
