"""A walk from a state, by whatever compiled code judges the problem fastest: loads kept up to date, or simulations."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import smallest_problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.search.guided_search import UNEVENNESS_WEIGHT, Floats, GuidedSearch, State
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.lists.travel import travel_ns
from opmark.leaderboards.simulator.events import room_for

# By how much memory counts for more after a walk that found nothing that fits, and the most it ever does.
STIFFENED, STIFFEST = 4.0, 4.0**6
# No tensor of a bound takes longer than 18 minutes, so that sums over a path stay below 2^63.
LONGEST_NS = 2**40
# Steps between two looks at the clock before it is known how fast they are, the fewest later, and for how long then.
FIRST_STEPS, FEWEST_STEPS, SLICE_S = 128, 32, 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a walk goes.

    The temperature falls from `heats[0]` to `heats[1]` times the cost, geometrically (both 0: a descent), and what a
    device's memory exceeded once over adds to the cost goes from `stiffness[0]` to `stiffness[1]` times it. A share
    `reorder` of the moves changes a priority, the others devices: of single groups alone, unless `regions`. Where loads
    count, all servers together add up to `unevenness` times the busiest one's.
    """

    heats: tuple[float, float] = (0.0, 0.0)
    stiffness: tuple[float, float] = (8.0, 8.0)
    reorder: float = 0.25
    regions: bool = True
    unevenness: float = UNEVENNESS_WEIGHT


class Walks:
    """Annealing of the states of one search; what is found goes to its incumbent."""

    def __init__(self, search: GuidedSearch, seed: int) -> None:
        self.search = search
        problem, rules = search.problem, search.rules
        plain = rules.model is None and not problem.contiguous and problem.memory_mode != "stash"
        plain = plain and OBJECTIVES.load(problem.objective).passes(problem) is None
        self.by_loads = plain and search.by_loads and problem.memory_mode == "sum"
        self.by_schedules = plain and problem.objective == "latency" and not rules.multicast
        self.steps, self.simulated = 0, 0
        # Grows while walks end without anything that fits.
        self._stiffer = 1.0
        self.steps_per_s = 0.0
        self._draw = np.random.default_rng(seed)
        self._contention = np.array([int(rules.contention)])
        if self.by_schedules:
            arrays = problem.arrays.under(rules)
            run = problem.arrays.run_ns
            fastest = np.where(run < 0, np.iinfo(np.int64).max, run).min(axis=1)
            self._bounding = (
                arrays.topological,
                np.maximum(run, 0).reshape(-1),
                np.minimum(travel_ns(problem), LONGEST_NS),
                problem.arrays.default_priority - fastest,
                arrays.device_slots,
            )
            self._packed = arrays.packed
            self._outputs = room_for(arrays)

    @property
    def compiled(self) -> bool:
        """Whether there is compiled code for the problem."""
        return self.by_loads or self.by_schedules

    def walk(self, state: State, steps: int, style: Style, *, stop: Callable[[], bool] = lambda: False) -> State:
        """The best state that fits of a walk of so many steps, or until time is up; where it ended if nothing fits."""
        search = self.search
        chosen, rank = state.chosen.copy(), state.priority.copy()
        best: State | None = None
        done = 0
        hot = self._hot(state)
        while done < steps and search.incumbent.left_s > 0 and not stop():
            count = FIRST_STEPS
            if self.steps_per_s:
                count = max(FEWEST_STEPS, int(self.steps_per_s * min(SLICE_S, search.incumbent.left_s)))
            count = min(count, steps - done)
            ends = [done / steps, (done + count) / steps]
            heats = np.array([_between(style.heats, end) for end in ends])
            weights = np.array([*(self._stiffer * _between(style.stiffness, end) for end in ends), style.unevenness])
            begun = time.monotonic()
            if self.by_loads:
                found = self._by_loads((chosen, rank), count, (heats, weights))
            else:
                found = self._by_schedules((chosen, rank), count, (heats, weights), style, hot, strict=state.strict)
            took = time.monotonic() - begun
            self.steps_per_s = count / took if took > 0 else 0.0
            done += count
            self.steps += count
            if math.isfinite(found.energy) and (best is None or found.energy < best.energy):
                best = found
                search.report(best)
                hot = self._hot(best)
        if best is None:
            self._stiffer = min(STIFFEST, self._stiffer * STIFFENED)
            return search.state(chosen, rank, strict=state.strict)
        self._stiffer = max(1.0, self._stiffer / STIFFENED)
        return best

    def _hot(self, state: State) -> Integers:
        """The groups that decide the cost; a walk by loads sees for itself."""
        return self.search.critical_groups(state) if self.by_schedules else np.zeros(0, dtype=np.int64)

    def _by_loads(self, place: tuple[Integers, Integers], steps: int, schedule: tuple[Floats, Floats]) -> State:
        from opmark.leaderboards.search import load_walk

        problem, (chosen, rank), best = self.search.problem, place, place[0].copy()
        compiled: Any = load_walk.walk_loads
        found = compiled(
            int(self._draw.integers(2**31)),
            steps,
            *schedule,
            *problem.arrays.packed,
            self._contention,
            problem.arrays.device_memory_bytes,
            self.search.tables,
            chosen,
            best,
        )
        return State(chosen=best, priority=rank, energy=float(found))

    def _by_schedules(
        self,
        place: tuple[Integers, Integers],
        steps: int,
        schedule: tuple[Floats, Floats],
        style: Style,
        hot: Integers,
        *,
        strict: bool,
    ) -> State:
        from opmark.leaderboards.search import schedule_walk

        arrays, best, best_rank = self.search.problem.arrays, place[0].copy(), place[1].copy()
        room = (np.empty(size, dtype=np.int64) for size in (arrays.units, arrays.units, arrays.devices + 1))
        orders = (np.array([int(strict)]), *self.search.orders, *room, np.zeros(arrays.devices + 1, dtype=np.int64))
        counts = np.zeros(1, dtype=np.int64)
        compiled: Any = schedule_walk.walk_schedules
        found = compiled(
            int(self._draw.integers(2**31)),
            steps,
            *schedule,
            style.reorder,
            style.regions,
            self._packed,
            int(self._contention[0]),
            arrays.device_memory_bytes,
            self.search.tables,
            self._bounding,
            orders,
            self._outputs,
            *place,
            best,
            best_rank,
            hot,
            counts,
        )
        self.simulated += int(counts[0])
        return State(chosen=best, priority=best_rank, energy=float(found), strict=strict)


def _between(ends: tuple[float, float], share: float) -> float:
    """Geometrically from the first end to the second."""
    return ends[0] * (ends[1] / ends[0]) ** share if ends[0] else 0.0


@cache
def warm_up_walks() -> None:
    """Have numba compile both kinds of walks, on the smallest problem that needs all of it."""
    problem = smallest_problem()
    for one in (problem, replace(problem, objective="throughput", memory_mode="sum")):
        search = GuidedSearch(one, Incumbent(one, "warm-up", 60.0), 0)
        walks = Walks(search, 0)
        for strict in (False, True) if walks.by_schedules else (False,):
            walks.walk(search.state(np.zeros(2, dtype=np.int64), strict=strict), 4, Style(heats=(0.1, 0.1)))
