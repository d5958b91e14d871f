"""Pesto: a coarsened graph, placed and scheduled at once by an integer program.

Hafeez, Sun, Gandhi, Liu, "Towards optimal placement and scheduling of DNN operations with Pesto", Middleware 2021:
section 3.2 has the program, section 3.3 the coarsening that keeps it small. For throughput the program minimises the
load of the busiest device or link; it then needs no start times.
"""

from itertools import combinations

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.integer_program import IntegerProgram
from opmark.leaderboards.bounds.relaxation import is_load
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.acyclic_regions import AcyclicRegions, acyclic_regions
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.lists.ranks import topological_position
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device, fill_by_memory

# The most regions of a program with start times, and of one with loads only.
SCHEDULED_AT_MOST, LOADED_AT_MOST = 20, 60
SOLVER_SHARE = 0.75
# The column of the objective.
COST = 0


class Pesto(Placer):
    """As good as the coarsening allows; the solver's best solution counts when time is up."""

    summary = "coarsened graph placed and ordered by an integer program (Pesto, Middleware'21)"

    def prepare(self) -> None:
        """Import the solver."""
        import scipy.optimize  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the solver's placement; without one, the best single device or a filling by memory."""
        del seed
        incumbent = Incumbent(problem, "pesto", budget_s)
        solve_coarsened(problem, incumbent, seconds=budget_s * SOLVER_SHARE)
        if incumbent.best is None:
            groups = groups_of(problem)
            incumbent.consider(Placement(device=groups.spread(fill_by_memory(problem, groups))))
            incumbent.consider(Placement(device=best_single_device(problem)[0]))
        return incumbent.solution()


PLACER = Pesto()


def solve_coarsened(problem: Problem, incumbent: Incumbent, *, seconds: float) -> Placement | None:
    """Offer the program's placement to the incumbent; None if the solver found no placement in `seconds`."""
    groups = groups_of(problem)
    # Section 3.3: coarsen the graph.
    load = is_load(problem)
    regions = acyclic_regions(problem, groups, LOADED_AT_MOST if load else SCHEDULED_AT_MOST)
    # Section 3.2: place the coarse graph and, for latency, schedule it.
    program = _Program(problem, regions, scheduled=not load)
    values = program.rows.solve(min(seconds, incumbent.left_s))
    if values is None:
        return None
    placement = Placement(device=groups.spread(program.device_of_region(values)[regions.of_group]))
    incumbent.consider(placement)
    if not load:
        start = values[program.start][regions.of_group][groups.of_unit]
        incumbent.consider(Placement(device=placement.device, priority=_earlier_first(problem, start)))
    return placement


def _earlier_first(problem: Problem, start: npt.NDArray[np.float64]) -> Integers:
    """Priorities by start time; of units that start together, the first in topological order has the highest."""
    priority = np.empty(len(start), dtype=np.int64)
    priority[np.lexsort((-topological_position(problem), -start))] = np.arange(len(start))
    return priority


class _Program:
    """The integer program. Variables: the cost; x[region][device] is 1 where the region runs; starts and orders.

    Every row says Σ coefficient · variable ≥ a number. Times are in units of `scale` ns.
    """

    def __init__(self, problem: Problem, regions: AcyclicRegions, *, scheduled: bool) -> None:
        arrays = problem.arrays
        self.regions = regions
        self.rows = IntegerProgram()
        self.scale = float(max(1, regions.run_ns.max()))
        self.x: list[dict[int, int]] = [
            {device: self.rows.binary() for device in np.flatnonzero(row >= 0).tolist()} for row in regions.run_ns
        ]
        self._assign()
        for device in range(arrays.devices):
            self._limit_work(device, slots=int(arrays.device_slots[device]))
            self._limit_memory(device, int(arrays.device_memory_bytes[device]))
        self.start: Integers = np.zeros(0, dtype=np.int64)
        if scheduled:
            longest = sum(row.max() for row in regions.run_ns) + sum(regions.traffic_ns.values())
            self._schedule(horizon=float(longest) / self.scale)
        else:
            for device in range(arrays.devices):
                self._limit_link(device, sends=True)
                self._limit_link(device, sends=False)

    def device_of_region(self, values: npt.NDArray[np.float64]) -> Integers:
        """The device of each region in a solution."""
        return np.array([max(row, key=lambda device: values[row[device]]) for row in self.x], dtype=np.int64)

    def _assign(self) -> None:
        """Every region runs on exactly one device."""
        for row in self.x:
            self.rows.add(dict.fromkeys(row.values(), 1.0), 1.0)
            self.rows.add(dict.fromkeys(row.values(), -1.0), -1.0)

    def _limit_work(self, device: int, slots: int) -> None:
        """The slots of a device work on its regions no longer than the cost."""
        work = {row[device]: -self._ns(region, device) for region, row in enumerate(self.x) if device in row}
        self.rows.add({COST: float(slots), **work}, 0.0)

    def _limit_memory(self, device: int, memory_bytes: int) -> None:
        """The weights of a device's regions fit into its memory."""
        weight = self.regions.weight_bytes
        held = {
            row[device]: -float(weight[region]) / memory_bytes for region, row in enumerate(self.x) if device in row
        }
        self.rows.add(held, -1.0)

    def _limit_link(self, device: int, *, sends: bool) -> None:
        """Everything that a device sends, or receives, takes no longer than the cost."""
        busy: dict[int, float] = {}
        for (producer, reader), ns in sorted(self.regions.traffic_ns.items()):
            here, there = (producer, reader) if sends else (reader, producer)
            if device in self.x[here]:
                crossing = self.rows.real(1.0)
                self._at_least_if_apart(crossing, device, here, there)
                busy[crossing] = -ns / self.scale
        self.rows.add({COST: 1.0, **busy}, 0.0)

    def _schedule(self, horizon: float) -> None:
        """Regions start when their inputs are there; regions on one device run one after the other."""
        count = self.regions.count
        self.start = np.array([self.rows.real(horizon) for _ in range(count)], dtype=np.int64)
        for region in range(count):
            self.rows.add({COST: 1.0, **self._end(region, -1.0)}, 0.0)
        for (a, b), ns in sorted(self.regions.traffic_ns.items()):
            terms = {int(self.start[b]): 1.0, **self._end(a, -1.0)}
            self.rows.add({**terms, self._apart(a, b): -ns / self.scale}, 0.0)
        later = self._later()
        for a, b in combinations(range(count), 2):
            if b not in later[a]:
                self._one_after_the_other(a, b, horizon)

    def _one_after_the_other(self, a: int, b: int, horizon: float) -> None:
        """If two regions share a device, the one starts after the other's end; rows are void if not."""
        shared = self.x[a].keys() & self.x[b].keys()
        if not shared:
            return
        together, a_first = self.rows.real(1.0), self.rows.binary()
        for device in sorted(shared):
            self.rows.add({together: 1.0, self.x[a][device]: -1.0, self.x[b][device]: -1.0}, -1.0)
        b_after_a = {int(self.start[b]): 1.0, **self._end(a, -1.0)}
        self.rows.add({**b_after_a, together: -horizon, a_first: -horizon}, -2.0 * horizon)
        a_after_b = {int(self.start[a]): 1.0, **self._end(b, -1.0)}
        self.rows.add({**a_after_b, together: -horizon, a_first: horizon}, -horizon)

    def _apart(self, a: int, b: int) -> int:
        """A new variable that is at least 1 if two regions have different devices."""
        apart = self.rows.real(1.0)
        for device in self.x[a]:
            self._at_least_if_apart(apart, device, a, b)
        return apart

    def _at_least_if_apart(self, variable: int, device: int, here: int, there: int) -> None:
        """A variable is at least 1 if the one region is on `device` and the other is not."""
        terms = {variable: 1.0, self.x[here][device]: -1.0}
        if device in self.x[there]:
            terms[self.x[there][device]] = 1.0
        self.rows.add(terms, 0.0)

    def _end(self, region: int, sign: float) -> dict[int, float]:
        """The end of a region, its start plus its time on its device, as terms of a row."""
        times = {column: sign * self._ns(region, device) for device, column in self.x[region].items()}
        return {int(self.start[region]): sign, **times}

    def _ns(self, region: int, device: int) -> float:
        return float(self.regions.run_ns[region, device]) / self.scale

    def _later(self) -> list[set[int]]:
        """Per region, all regions that wait for it."""
        found: list[set[int]] = [set() for _ in range(self.regions.count)]
        for a, b in sorted(self.regions.traffic_ns, reverse=True):  # Regions are numbered in topological order.
            found[a] |= {b} | found[b]
        return found
