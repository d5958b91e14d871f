"""The answer of a list scheduler: its schedule as the cheapest valid placement."""

from dataclasses import replace

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.lists.list_schedule import ListSchedule
from opmark.leaderboards.simulator.simulate import fits, simulate


def list_answer(problem: Problem, schedule: ListSchedule, priority: Integers | None, *, placer: str) -> Solution:
    """The cheapest variant of a schedule as the solution of `placer`."""
    return solution_of(problem, cheapest_variant(problem, schedule.placement(priority)), placer=placer)


def cheapest_variant(problem: Problem, placement: Placement) -> Placement:
    """The cheapest variant of a placement that fits: its strict order, its priorities only, or default priorities.

    A placement that must be contiguous is repaired first.
    """
    placement = held_together(problem, placement)
    variants = [placement, replace(placement, order=None), Placement(device=placement.device)]
    schedules = [simulate(problem, variant) for variant in variants]
    costs = [(not fits(problem, schedule), schedule.cost_ns) for schedule in schedules]
    return variants[costs.index(min(costs))]
