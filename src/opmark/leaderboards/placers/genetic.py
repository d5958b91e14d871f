"""A biased random-key genetic algorithm over devices and priorities.

Gonçalves, Resende, "Biased random-key genetic algorithms for combinatorial optimization", Journal of Heuristics 17,
2011, with the keys that Paliwal et al., "Reinforced genetic algorithm learning for optimizing computation graphs",
ICLR 2020, use for placement: an affinity per class and device, whose largest wins, and a priority per unit.
"""

import time

import numpy as np

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.states import Search, spread_ranks

POPULATION, ELITE, MUTANTS = 64, 14, 8
# How likely a child takes a key from its elite parent.
BIAS = 0.75
GENERATIONS, IDLE = 3_000, 250
BUDGET_SHARE = 0.95
# How much of a priority is the upward rank; the rest is the key.
RANK_SHARE = 0.7


class Genetic(Placer):
    """Anytime; the first population holds every single device and the filling by memory."""

    summary = "biased random-key genetic algorithm over devices and priorities (Gonçalves 2011; REGAL's keys)"
    paper = Placer.cites(
        "Gonçalves, Resende: Biased random-key genetic algorithms for combinatorial optimization, J. of Heuristics 17",
        2011,
        link="https://doi.org/10.1007/s10732-010-9143-1",
    )

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement bred; the same for a seed where the budget does not cut it short."""
        incumbent = Incumbent(problem, "genetic", budget_s * BUDGET_SHARE)
        search = Search(problem, incumbent)
        draw = np.random.default_rng(seed)
        groups, devices = search.groups, problem.arrays.devices
        genes = groups.count * devices
        keys = draw.random((POPULATION, genes + problem.arrays.units))
        known = starting_rows(problem, groups)[:POPULATION]
        for row, chosen in zip(keys, known, strict=False):
            table = row[:genes].reshape(groups.count, devices) * 0.5
            table[np.arange(groups.count), chosen] += 0.5
            row[:genes] = table.reshape(-1)
        base = spread_ranks(problem, None)
        allowed = groups.allowed

        def judged(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            affinity = np.where(allowed, rows[:, :genes].reshape(len(rows), groups.count, devices), -1.0)
            chosen = affinity.argmax(axis=2).astype(np.int64)
            ranks = (RANK_SHARE * base + (1 - RANK_SHARE) * rows[:, genes:] * base.max()).astype(np.int64)
            return search.energies(chosen, ranks)[0], chosen, ranks

        energies, chosen, ranks = judged(keys)
        best, idle = np.inf, 0
        for _ in range(GENERATIONS):
            order = np.argsort(energies, kind="stable")
            keys, energies, chosen, ranks = keys[order], energies[order], chosen[order], ranks[order]
            idle = 0 if energies[0] < best else idle + 1
            if energies[0] < best:
                best = float(energies[0])
                search.report(search.state(chosen[0], ranks[0]))
            if idle >= IDLE or time.monotonic() >= incumbent.deadline:
                break
            children = POPULATION - ELITE - MUTANTS
            elite = keys[draw.integers(ELITE, size=children)]
            other = keys[draw.integers(ELITE, POPULATION, size=children)]
            bred = np.where(draw.random(elite.shape) < BIAS, elite, other)
            fresh = np.concatenate([bred, draw.random((MUTANTS, keys.shape[1]))])
            keys[ELITE:] = fresh
            energies[ELITE:], chosen[ELITE:], ranks[ELITE:] = judged(fresh)
        return incumbent.solution()


PLACER = Genetic()
