"""States of a search over one problem: a device per group and an order of priorities, judged by the simulator."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.simulator.simulate import costs_and_peaks

# The energy of a placement that needs twice a device's memory is so many times its cost higher.
EXCESS_WEIGHT = 8.0
# Priorities stand so far apart.
SPREAD = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A device per group, a priority per unit, and their cost as energy; more where they do not fit into memory."""

    chosen: Integers
    priority: Integers
    energy: float
    fits: bool

    @property
    def merit(self) -> tuple[bool, float]:
        """States in order: those that fit first, then by energy."""
        return not self.fits, self.energy


class Search:
    """Judges the states of one problem; good ones go to the incumbent."""

    def __init__(self, problem: Problem, incumbent: Incumbent) -> None:
        self.problem = problem
        self.incumbent = incumbent
        self.groups: Groups = groups_of(problem)
        self.rules = profile_named(problem.profile)
        # Priorities decide when units run; loads do not depend on them.
        self.ordered = self.rules.model is None and not problem.pipelined

    @property
    def movable(self) -> bool:
        """True where some group has a choice of devices."""
        return bool((self.groups.allowed.sum(axis=1) > 1).any())

    @property
    def free(self) -> bool:
        """True where a search can change anything: a device, or the order of several units."""
        return self.movable or (self.ordered and len(self.problem.units) > 1)

    def starts(self, rows: Integers) -> list[State]:
        """Rows of devices per group with the default priorities, judged."""
        return self.states(rows, spread_ranks(self.problem, None)[None, :])

    def state(self, chosen: Integers, priority: Integers | None = None) -> State:
        """One placement, judged; `chosen` is a device per group."""
        return self.states(chosen[None, :], spread_ranks(self.problem, priority)[None, :])[0]

    def states(self, rows: Integers, ranks: Integers) -> list[State]:
        """Rows of devices per group, judged with their rows of priorities or with one row for all."""
        energies, excess = self.energies(rows, ranks)
        shared = len(ranks) == 1
        return [
            State(
                chosen=rows[k],
                priority=ranks[0 if shared else k],
                energy=float(energies[k]),
                fits=bool(excess[k] == 0 and math.isfinite(energies[k])),
            )
            for k in range(len(rows))
        ]

    def best_of(self, rows: Integers, ranks: Integers) -> State:
        """The state of most merit among rows of devices per group, with one row of priorities for all."""
        energies, excess = self.energies(rows, ranks)
        fits = (excess == 0) & np.isfinite(energies)
        best = int(np.lexsort((energies, ~fits))[0])
        return State(chosen=rows[best].copy(), priority=ranks[0], energy=float(energies[best]), fits=bool(fits[best]))

    def energies(self, rows: Integers, ranks: Integers) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The energy per row (infinite where it cannot run), and its excess: bytes beyond memory, as shares of it."""
        costs, excess = self.costs(self.groups.spread(rows), ranks)
        return costs * (1.0 + EXCESS_WEIGHT * excess) + (excess > 0), excess

    def costs(self, table: Integers, ranks: Integers) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The cost per row of devices per unit (infinite where it cannot run), and its excess."""
        costs, peaks = costs_and_peaks(self.problem, table, ranks.reshape(-1) if self.ordered else None)
        memory = self.problem.arrays.device_memory_bytes
        excess = (np.maximum(0, peaks - memory) / memory).sum(axis=1)
        return np.where(costs == INVALID_COST, np.inf, costs), excess

    def state_of(self, placement: Placement, *, priority: bool = False) -> State:
        """The devices of a placement, with the default priorities or (`priority`) with its own."""
        chosen = np.zeros(self.groups.count, dtype=np.int64)
        chosen[self.groups.of_unit] = placement.device
        return self.state(chosen, placement.priority if priority else None)

    def placement(self, state: State) -> Placement:
        """A state as a placement."""
        device = self.groups.spread(state.chosen)
        return Placement(device=device, priority=state.priority if self.ordered else None)

    def report(self, state: State) -> None:
        """Give a state to the incumbent."""
        if math.isfinite(state.energy):
            self.incumbent.consider(self.placement(state))


def spread_ranks(problem: Problem, priority: Integers | None) -> Integers:
    """Priorities (default: upward rank) in the same order with room between them; of equals the first unit leads."""
    rank = problem.arrays.default_priority if priority is None else priority
    order = np.lexsort((-np.arange(len(rank)), rank))
    spread = np.empty(len(rank), dtype=np.int64)
    spread[order] = (np.arange(len(rank)) + 1) * SPREAD
    return spread
