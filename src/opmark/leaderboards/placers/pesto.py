"""Pesto: a coarsened graph, placed and scheduled at once by an integer program.

Hafeez, Sun, Gandhi, Liu, "Towards optimal placement and scheduling of DNN operations with Pesto", Middleware 2021:
section 3.2 has the program (assignment, start times, order of what shares a device, transfers, memory), section 3.3 the
coarsening that keeps it small. Here a throughput objective asks for the busiest device or link instead of start times.
"""

from itertools import combinations

import numpy as np

from opmark.leaderboards.bounds.integer_program import IntegerProgram
from opmark.leaderboards.bounds.relaxation import is_load
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.acyclic_regions import AcyclicClusters, acyclic_clusters
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device, fill_by_memory

SCHEDULED_AT_MOST, LOADED_AT_MOST = 20, 60
SOLVER_SHARE = 0.75


class Pesto(Placer):
    """As good as the coarsening lets it be; the solver's best counts when time is up."""

    summary = "coarsened graph placed and ordered by an integer program (Pesto, Middleware'21)"

    def prepare(self) -> None:
        """Import the solver."""
        import scipy.optimize  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The solver's placement; where it found none in time or memory, the best single device or a filling."""
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
    """What the program says, given to the incumbent; None where the solver found nothing in that time."""
    groups = groups_of(problem)
    load = is_load(problem)
    clusters = acyclic_clusters(problem, groups, LOADED_AT_MOST if load else SCHEDULED_AT_MOST)
    program = _Program(problem, clusters, scheduled=not load)
    values = program.rows.solve(min(seconds, incumbent.left_s))
    if values is None:
        return None
    chosen = np.array([max(row, key=lambda device: values[row[device]]) for row in program.choice], dtype=np.int64)
    placement = Placement(device=groups.spread(chosen[clusters.of_group]))
    incumbent.consider(placement)
    if not load:
        starts = values[program.start]
        rank = -starts[clusters.of_group][groups.of_unit]
        topological = problem.arrays.topological
        position = np.empty(len(topological), dtype=np.int64)
        position[topological] = np.arange(len(topological))
        priority = np.empty(len(rank), dtype=np.int64)
        priority[np.lexsort((-position, rank))] = np.arange(len(rank))
        incumbent.consider(Placement(device=placement.device, priority=priority))
    return placement


class _Program:
    """Variables: the cost, who runs where, and where times matter the starts and who comes first."""

    def __init__(self, problem: Problem, clusters: AcyclicClusters, *, scheduled: bool) -> None:
        self.clusters = clusters
        self.rows = IntegerProgram()
        self.scale = float(max(1, clusters.run_ns.max()))
        arrays = problem.arrays
        self.choice: list[dict[int, int]] = [
            {device: self.rows.binary() for device in np.flatnonzero(row >= 0).tolist()} for row in clusters.run_ns
        ]
        for row in self.choice:
            self.rows.add(dict.fromkeys(row.values(), 1.0), 1.0)
            self.rows.add(dict.fromkeys(row.values(), -1.0), -1.0)
        for device in range(arrays.devices):
            mine = {cluster: row[device] for cluster, row in enumerate(self.choice) if device in row}
            work = {column: -self._ns(cluster, device) for cluster, column in mine.items()}
            self.rows.add({0: float(arrays.device_slots[device]), **work}, 0.0)
            memory = float(arrays.device_memory_bytes[device])
            self.rows.add({mine[c]: -float(clusters.weight_bytes[c]) / memory for c in mine}, -1.0)
        self.start: Integers = np.zeros(0, dtype=np.int64)
        if scheduled:
            self._schedule(float(sum(row.max() for row in clusters.run_ns) + sum(clusters.edges.values())) / self.scale)
        else:
            self._links(arrays.devices)

    def _ns(self, cluster: int, device: int) -> float:
        return float(self.clusters.run_ns[cluster, device]) / self.scale

    def _spent(self, cluster: int, sign: float) -> dict[int, float]:
        return {column: sign * self._ns(cluster, device) for device, column in self.choice[cluster].items()}

    def _schedule(self, horizon: float) -> None:
        """A cluster starts after its inputs came, and two on one device run one after the other."""
        count = self.clusters.count
        self.start = np.array([self.rows.real(horizon) for _ in range(count)], dtype=np.int64)
        for cluster in range(count):
            self.rows.add({0: 1.0, int(self.start[cluster]): -1.0, **self._spent(cluster, -1.0)}, 0.0)
        for (a, b), ns in sorted(self.clusters.edges.items()):
            terms = {int(self.start[b]): 1.0, int(self.start[a]): -1.0, **self._spent(a, -1.0)}
            self.rows.add({**terms, self._apart(a, b): -ns / self.scale}, 0.0)
        after = self._after()
        for a, b in combinations(range(count), 2):
            shared = self.choice[a].keys() & self.choice[b].keys()
            if b in after[a] or not shared:
                continue
            together, first = self.rows.real(1.0), self.rows.binary()
            for device in sorted(shared):
                self.rows.add({together: 1.0, self.choice[a][device]: -1.0, self.choice[b][device]: -1.0}, -1.0)
            one = {int(self.start[b]): 1.0, int(self.start[a]): -1.0, **self._spent(a, -1.0)}
            self.rows.add({**one, together: -horizon, first: -horizon}, -2.0 * horizon)
            other = {int(self.start[a]): 1.0, int(self.start[b]): -1.0, **self._spent(b, -1.0)}
            self.rows.add({**other, together: -horizon, first: horizon}, -horizon)

    def _after(self) -> list[set[int]]:
        """Per cluster, all that wait for it."""
        found: list[set[int]] = [set() for _ in range(self.clusters.count)]
        for a, b in sorted(self.clusters.edges, reverse=True):  # clusters stand in topological order
            found[a] |= {b} | found[b]
        return found

    def _apart(self, a: int, b: int) -> int:
        """A variable that is at least 1 where two clusters have different devices."""
        apart = self.rows.real(1.0)
        for device, column in self.choice[a].items():
            terms = {apart: 1.0, column: -1.0}
            if device in self.choice[b]:
                terms[self.choice[b][device]] = 1.0
            self.rows.add(terms, 0.0)
        return apart

    def _links(self, devices: int) -> None:
        """What leaves a device, and what comes to it, keeps its links busy."""
        for device in range(devices):
            for ends in ((0, 1), (1, 0)):
                busy: dict[int, float] = {}
                for edge, ns in sorted(self.clusters.edges.items()):
                    here, there = edge[ends[0]], edge[ends[1]]
                    if device not in self.choice[here]:
                        continue
                    crossing = self.rows.real(1.0)
                    terms = {crossing: 1.0, self.choice[here][device]: -1.0}
                    if device in self.choice[there]:
                        terms[self.choice[there][device]] = 1.0
                    self.rows.add(terms, 0.0)
                    busy[crossing] = -ns / self.scale
                self.rows.add({0: 1.0, **busy}, 0.0)
