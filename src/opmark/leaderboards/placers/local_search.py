"""Local search: the best of HEFT and the best single device, improved move by move until nothing helps."""

import time

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.groups import groups_of
from opmark.leaderboards.placement import Placement, Solution, solution_of
from opmark.leaderboards.placer import Placer
from opmark.leaderboards.placers.heft import heft_schedule
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.problem_arrays import Integers
from opmark.leaderboards.search_space import SearchSpace
from opmark.leaderboards.simulator import INVALID_COST, fits, simulate, simulate_many
from opmark.leaderboards.single import fill_by_memory, single_device_rows

BATCH = 48
# Batches without an improvement after which the search gives up, so that small problems end before their budget.
PATIENCE = 40


class LocalSearch(Placer):
    """Anytime: each batch of neighbours is simulated exactly, and the cheapest replaces the current placement."""

    summary = "moves of groups, connected pieces and stretches, every neighbour simulated"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement found; the same for a seed as long as the budget does not cut it short."""
        deadline = time.monotonic() + budget_s
        groups = groups_of(problem)
        schedule, rank = heft_schedule(problem)
        ordered = schedule.placement(rank)
        heft = np.zeros(groups.count, dtype=np.int64)
        heft[groups.of_unit] = ordered.device
        starts = np.array([*single_device_rows(groups), fill_by_memory(problem, groups), heft])
        chosen, cost, priority = _best_start(problem, groups.spread(starts), starts, rank)
        space = SearchSpace(problem, groups, np.random.default_rng(seed))
        idle = 0
        while space.movable and idle < PATIENCE and time.monotonic() < deadline:
            rows = space.neighbours(chosen, BATCH)
            costs = simulate_many(problem, groups.spread(rows), priority)
            best = int(costs.argmin())
            idle = 0 if costs[best] < cost else idle + 1
            if costs[best] <= cost:  # sideways moves cross plateaus
                chosen, cost = rows[best], int(costs[best])
        kept = simulate(problem, ordered)
        if fits(problem, kept) and kept.cost_ns < cost:
            return solution_of(problem, ordered, placer="local-search")
        if cost == INVALID_COST:
            raise PlacementError("nothing that was tried fits into memory")
        return solution_of(problem, Placement(device=groups.spread(chosen), priority=priority), placer="local-search")


def _best_start(
    problem: Problem, table: Integers, rows: Integers, rank: Integers
) -> tuple[Integers, int, Integers | None]:
    """The cheapest row, its cost, and the priorities (None: the default ones) that made it so."""
    default, ranked = simulate_many(problem, table), simulate_many(problem, table, rank)
    priority = rank if ranked.min() < default.min() else None
    costs = default if priority is None else ranked
    best = int(costs.argmin())
    return rows[best], int(costs[best]), priority


PLACER = LocalSearch()
