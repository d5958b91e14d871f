"""Iterated local search: the best list schedule or single device, improved move by move, kicked when stuck.

Lourenço, Martin, Stützle, "Iterated local search", Handbook of Metaheuristics, 2003: descend, disturb the best a
little, descend again.
"""

import time
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.contiguity import returning_unit
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of, solution_of
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.annealing import warm_up
from opmark.leaderboards.search.anytime import offer
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.lists.ranks import upward_rank
from opmark.leaderboards.search.placer import PLACERS, Placer
from opmark.leaderboards.search.regions import neighbourhood_of
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.simulator.simulate import fits, simulate, simulate_many

LISTS = ("heft", "cpop", "peft")
BATCH = 48
# Batches without an improvement after which a descent is at its end, and how many descents there are, so that small
# problems end before their budget.
PATIENCE = 24
DESCENTS = 16
KICKS = 4


class LocalSearch(Placer):
    """Anytime: each batch of neighbours is simulated exactly, and the cheapest replaces the current placement.

    What each descent starts from is handed over, should the clock not wait for its end.
    """

    summary = "moves of groups, connected pieces and stretches, every neighbour simulated"
    paper = Placer.cites(
        "Lourenço, Martin, Stützle: Iterated local search, Handbook of Metaheuristics",
        2003,
        link="https://doi.org/10.1007/0-306-48056-5_11",
    )

    def prepare(self) -> None:
        """Compile the moves."""
        warm_up()
        _Neighbours(smallest_problem(), 0).of(np.zeros(2, dtype=np.int64), 1)

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement found; the same for a seed as long as the budget does not cut it short."""
        deadline = time.monotonic() + budget_s
        groups = groups_of(problem)
        rank = upward_rank(problem)
        answers = [PLACERS.load(name).place(problem, budget_s=budget_s, seed=seed) for name in LISTS]
        listed = [placement_of(problem, answer) for answer in answers]
        of_groups = np.zeros((len(listed), groups.count), dtype=np.int64)
        for row, placement in zip(of_groups, listed, strict=True):
            row[groups.of_unit] = placement.device
        starts = np.array([*starting_rows(problem, groups), *of_groups])
        chosen, cost, priority = _best_start(problem, groups.spread(starts), starts, rank)
        neighbours = _Neighbours(problem, seed)
        best, best_cost = chosen, cost
        handed_over = INVALID_COST
        for _ in range(DESCENTS if neighbours.movable else 0):
            if best_cost < handed_over:
                handed_over = best_cost
                placement = Placement(device=groups.spread(best), priority=priority)
                offer(solution_of(problem, placement, placer="local-search"))
            idle = 0
            while idle < PATIENCE and time.monotonic() < deadline:
                rows = neighbours.of(chosen, BATCH)
                costs = simulate_many(problem, groups.spread(rows), priority)
                least = int(costs.argmin())
                idle = 0 if costs[least] < cost else idle + 1
                if costs[least] <= cost:  # sideways moves cross plateaus
                    chosen, cost = rows[least], int(costs[least])
            if cost < best_cost:
                best, best_cost = chosen, cost
            chosen = best
            for _ in range(KICKS):
                chosen = neighbours.of(chosen, 1)[0]
            cost = int(simulate_many(problem, groups.spread(chosen[None, :]), priority)[0])
        answer = Placement(device=groups.spread(best), priority=priority)
        for placement in listed:  # a list schedule may owe its cost to its strict order
            if problem.contiguous and returning_unit(problem, placement.device) is not None:
                continue
            kept = simulate(problem, placement)
            if fits(problem, kept) and kept.cost_ns < best_cost:
                answer, best_cost = placement, kept.cost_ns
        if best_cost == INVALID_COST:
            raise PlacementError("nothing that was tried fits into memory")
        return solution_of(problem, answer, placer="local-search")


class _Neighbours:
    """Draws neighbours of a placement."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from opmark.leaderboards.search.moves import moves_of

        self._moves = moves_of(neighbourhood_of(problem), seed)
        self.movable = len(self._moves.hood.movable)

    def of(self, chosen: Integers, count: int) -> Integers:
        """`count` rows near `chosen` (a device per group)."""
        from opmark.leaderboards.search import moves

        compiled: Any = moves.neighbour_rows
        rows = np.empty((count, len(chosen)), dtype=np.int64)
        compiled(np.ascontiguousarray(chosen), rows, self._moves)
        return rows


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
