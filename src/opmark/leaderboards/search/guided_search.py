"""Annealing over devices and priorities, neighbours drawn and simulated in batches, led by what is critical.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983, with the first accepted neighbour
of a batch taken. What does not fit into memory costs more the less it fits, so that a search may pass through it.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.cluster_levels import ClusterLevels, cluster_levels
from opmark.leaderboards.search.critical_units import critical_units
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.lists.list_schedule import schedule_by_earliest_finish, schedule_by_earliest_start
from opmark.leaderboards.search.lists.ranks import readers_of_units
from opmark.leaderboards.simulator.simulate import costs_and_peaks, fits, simulate

Floats = npt.NDArray[np.float64]
FEWEST_ROWS, MOST_ROWS = 4, 64
# How much dearer a placement is that needs twice a device's memory.
EXCESS_WEIGHT = 8.0
# Of the busiest server's load, what all servers together add where they are as busy.
UNEVENNESS_WEIGHT = 0.05
# Critical groups are looked up again after this many accepted moves.
LOOKED_UP_EVERY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A device per group, a priority per unit, and what they cost; `strict`: devices keep the order of priorities."""

    chosen: Integers
    priority: Integers
    energy: float
    strict: bool = False


class GuidedSearch:
    """Judges and improves states of one problem; whatever it finds goes to the incumbent."""

    def __init__(self, problem: Problem, incumbent: Incumbent, seed: int) -> None:
        self.problem = problem
        self.incumbent = incumbent
        self.groups: Groups = groups_of(problem)
        self.levels: ClusterLevels = cluster_levels(problem, self.groups)
        self.evaluations = 0
        self.rules = profile_named(problem.profile)
        # Priorities and orders decide when things run; loads do not care.
        self.ordered = self.rules.model is None and problem.objective != "throughput"
        # Loads alone tell most of what cannot pass: then many more neighbours can be looked at.
        self.by_loads = problem.objective == "throughput" and self.rules.model is None
        self._draw = np.random.default_rng(seed)
        allowed = self.groups.allowed
        self._movable = np.flatnonzero(allowed.sum(axis=1) > 1).astype(np.int64)
        self._readers = readers_of_units(problem)
        self._waiting = np.bincount(self._readers[1], minlength=problem.arrays.units).astype(np.int64)
        members = [unit for row in self.groups.members for unit in row]
        # What compiled moves read: devices and choices of groups, cluster levels, neighbours, and members.
        self.tables = (
            allowed.reshape(-1).astype(np.int64),
            self._movable,
            self.levels.labels.reshape(-1),
            self.levels.base,
            self.levels.offsets,
            self.levels.members,
            self.levels.neighbour_offsets,
            self.levels.neighbours,
            np.cumsum([0, *map(len, self.groups.members)]).astype(np.int64),
            np.array(members, dtype=np.int64),
        )

    @property
    def orders(self) -> tuple[tuple[Integers, Integers], Integers]:
        """What a strict order is made from: the readers of each unit in compressed rows, and how many it waits for."""
        return self._readers, self._waiting

    @property
    def movable(self) -> int:
        """How many groups have a choice of devices."""
        return len(self._movable)

    def state(self, chosen: Integers, priority: Integers | None = None, *, strict: bool = False) -> State:
        """One placement, judged; `chosen` is a device per group."""
        rank = spread_ranks(self.problem, priority)
        energy = float(self.energies(chosen[None, :], rank[None, :], strict=strict)[0])
        return State(chosen=chosen, priority=rank, energy=energy, strict=strict)

    def energies(self, rows: Integers, ranks: Integers, *, strict: bool = False) -> Floats:
        """The cost per row, more where it does not fit into memory, infinite where it cannot run."""
        table = self.groups.spread(rows)
        self.evaluations += len(rows)
        if strict and OBJECTIVES.load(self.problem.objective).passes(self.problem) is None:
            costs, peaks = self._strict(table, np.array(np.broadcast_to(ranks, table.shape)))
        else:
            costs, peaks = costs_and_peaks(self.problem, table, ranks.reshape(-1) if self.ordered else None)
        memory = self.problem.arrays.device_memory_bytes
        excess = (np.maximum(0, peaks - memory) / memory).sum(axis=1)
        found: Floats = np.where(costs == INVALID_COST, np.inf, costs * (1.0 + EXCESS_WEIGHT * excess) + (excess > 0))
        return found

    def _strict(self, table: Integers, ranks: Integers) -> tuple[Integers, Integers]:
        from opmark.leaderboards.search import search_engine
        from opmark.leaderboards.simulator.events import room_for

        arrays = self.problem.arrays.under(self.rules)
        peaks = np.zeros((len(table), arrays.devices), dtype=np.int64)
        compiled: Any = search_engine.run_strict
        latencies = compiled(
            *arrays.packed,
            table,
            ranks,
            self._readers,
            self._waiting,
            int(self.rules.contention),
            room_for(arrays),
            peaks,
        )
        return OBJECTIVES.load(self.problem.objective).costs(self.problem, table, latencies, self.rules), peaks

    def fits(self, state: State) -> bool:
        """Whether no device holds more than it has."""
        if not math.isfinite(state.energy):
            return False
        return fits(self.problem, simulate(self.problem, self.placement(state)))

    def placement(self, state: State) -> Placement:
        """A state as a placement."""
        device = self.groups.spread(state.chosen)
        if not self.ordered:
            return Placement(device=device)
        order = self._order(device, state.priority) if state.strict else None
        return Placement(device=device, priority=state.priority, order=order)

    def _order(self, device: Integers, priority: Integers) -> dict[int, list[int]]:
        from opmark.leaderboards.search import search_engine

        units = self.problem.arrays.units
        sequence = np.empty(units, dtype=np.int64)
        compiled: Any = search_engine.sequence_of
        compiled(self.problem.arrays.packed[0], self._readers, self._waiting, priority, sequence)
        rows: dict[int, list[int]] = {number: [] for number in range(self.problem.arrays.devices)}
        for unit in sequence.tolist():
            rows[int(device[unit])].append(unit)
        return rows

    def report(self, state: State) -> None:
        """Give a state to the incumbent."""
        if math.isfinite(state.energy):
            self.incumbent.consider(self.placement(state))

    def anneal(
        self,
        state: State,
        evaluations: int,
        heat: tuple[float, float] = (0.0, 0.0),
        *,
        reorder: float = 0.25,
        guided: bool = True,
        regions: bool = True,
        patience: float = math.inf,
        stop: Callable[[], bool] = lambda: False,
    ) -> State:
        """The best state seen in so many evaluations, or until `patience` of them brought nothing, or time is up.

        The temperature falls from `heat[0]` to `heat[1]` times the state's energy; without heat this is a descent that
        also steps sideways. Without `regions` only single groups move; without `guided` all are as likely.
        """
        from opmark.leaderboards.search import search_engine

        compiled: Any = search_engine.neighbours
        now = best = state
        level = now.energy + (float(self._loads(now.chosen[None, :])[1][0]) if self.by_loads else 0.0)
        reorder = reorder if self.ordered else 0.0
        rows_at_once, done, accepted, best_at = FEWEST_ROWS * 2, 0, 0, 0
        hot = self.critical_groups(now) if guided else np.zeros(0, dtype=np.int64)
        by_rank = np.argsort(now.priority, kind="stable")
        while done < evaluations and done - best_at <= patience and not stop():
            if time.monotonic() >= self.incumbent.deadline:
                break
            rows = np.empty((rows_at_once, self.groups.count), dtype=np.int64)
            ranks = np.empty((rows_at_once if reorder else 0, self.problem.arrays.units), dtype=np.int64)
            seed = int(self._draw.integers(2**31))
            compiled(seed, now.chosen, now.priority, rows, ranks, reorder, regions, hot, self.tables, by_rank)
            done += rows_at_once
            heated = heat[0] * (heat[1] / heat[0]) ** min(1.0, done / evaluations) if heat[0] else 0.0
            base = best.energy if math.isfinite(best.energy) else 0.0
            limit = level - heated * base * np.log(self._draw.random(rows_at_once))
            energies, judged = self._judged(rows, ranks if reorder else now.priority[None, :], limit, strict=now.strict)
            passing = np.flatnonzero(judged <= limit)
            if not len(passing):
                rows_at_once = min(MOST_ROWS, rows_at_once * 2)
                continue
            taken = int(passing[judged[passing].argmin()]) if not heated else int(passing[0])
            if len(passing) > rows_at_once // 4:
                rows_at_once = max(FEWEST_ROWS, rows_at_once // 2)
            rank = ranks[taken] if reorder else now.priority
            moved = energies[taken] != now.energy
            now = replace(now, chosen=rows[taken], priority=rank, energy=float(energies[taken]))
            level = float(judged[taken])
            accepted += 1
            if reorder:
                by_rank = np.argsort(now.priority, kind="stable")
            if now.energy < best.energy:
                best, best_at = now, done
                self.report(best)
            if guided and moved and accepted % LOOKED_UP_EVERY == 0:
                hot = self.critical_groups(now)
        return best

    def _judged(self, rows: Integers, ranks: Integers, limit: Floats, *, strict: bool) -> tuple[Floats, Floats]:
        """Energies, and what is held against `limit`; what cannot pass is not simulated."""
        if not self.by_loads:
            energies = self.energies(rows, ranks, strict=strict)
            return energies, energies
        energies, extra = self._loads(rows)
        hopeful = np.flatnonzero(energies + extra <= limit)
        self.evaluations += len(rows) - len(hopeful)
        if len(hopeful):
            energies[hopeful] = self.energies(rows[hopeful], ranks)
        return energies, energies + extra

    def _loads(self, rows: Integers) -> tuple[Floats, Floats]:
        """The busiest server's load, and a little more where loads are uneven below it too: a search sees its way."""
        from opmark.leaderboards.simulator.loads import server_rows

        compiled: Any = server_rows
        servers = compiled(
            *self.problem.arrays.packed, self.groups.spread(rows).reshape(-1), int(self.rules.contention)
        )
        busiest = servers.max(axis=1).astype(np.float64)
        squares = (servers.astype(np.float64) ** 2).mean(axis=1)
        return busiest, UNEVENNESS_WEIGHT * squares / np.maximum(1.0, busiest)

    def critical_groups(self, state: State) -> Integers:
        """The groups that decide the cost now."""
        if self.rules.model is not None or not math.isfinite(state.energy):
            return np.zeros(0, dtype=np.int64)
        placement = self.placement(state)
        found = np.unique(
            self.groups.of_unit[critical_units(self.problem, placement, simulate(self.problem, placement))]
        )
        return np.intersect1d(found, self._movable).astype(np.int64)


def spread_ranks(problem: Problem, priority: Integers | None) -> Integers:
    """Priorities (default: upward rank) in the same order with room between them; of equals the first unit leads."""
    rank = problem.arrays.default_priority if priority is None else priority
    order = np.lexsort((-np.arange(len(rank)), rank))
    spread = np.empty(len(rank), dtype=np.int64)
    spread[order] = (np.arange(len(rank)) + 1) * 1024
    return spread


@cache
def warm_up() -> None:
    """Have numba compile list scheduling and search, on the smallest problem that needs all of it."""
    from opmark.leaderboards.simulator import loads  # noqa: F401 (compiled when imported)

    problem = smallest_problem()
    rank = problem.arrays.default_priority
    schedule_by_earliest_finish(problem, problem.arrays.topological)
    schedule_by_earliest_start(problem, rank)
    search = GuidedSearch(problem, Incumbent(problem, "warm-up", 60.0), 0)
    for strict in (False, True):
        search.anneal(search.state(np.zeros(2, dtype=np.int64), strict=strict), FEWEST_ROWS)
    search.anneal(search.state(np.zeros(2, dtype=np.int64)), FEWEST_ROWS, reorder=0.0)
