"""Sailor's dynamic program: stages of consecutive layers, each on a device type, for every row of counts at once.

Strati et al., "Sailor: Automating Distributed Training over Dynamic, Heterogeneous, and Geo-distributed Clusters", SOSP
2025, section 4.2: the best plan for the remaining layers and the remaining devices of each type follows from those for
fewer layers. Stages are without replicas or tensor parallelism here. The time of a plan is that of its slowest stage
where samples or micro-batches follow one another, else the sum of its stages.
"""

import itertools

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.stages import cut_ns
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import FleetFigures, FleetHunt, front_fleets

# Plans that are simulated, the best by their estimate first; and blocks beyond which neighbours are joined.
SIMULATED, BLOCKS_AT_MOST = 12, 40


class SailorStages(Placer):
    """Plans are chains of stages, so branches are never run side by side."""

    summary = "dynamic program over stages and device types for all counts (Sailor, SOSP'25)"
    rents = True
    paper = Placer.cites(
        "Strati et al.: Sailor: automating distributed training over dynamic, heterogeneous, and geo-distributed "
        "clusters, SOSP",
        2025,
        code="https://github.com/eth-easl/sailor",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the best simulated plan, or the plans on the estimated front. Raises `PlacementError` without any."""
        del seed
        hunt = FleetHunt(problem, "sailor-stages", budget_s)
        plans = _Plans(hunt, blocks_of(problem))
        ranked = sorted(plans.fleets(), key=lambda fleet: (hunt.rank(plans.estimate(fleet)), fleet))
        if problem.fronted:
            ranked = front_fleets(map(plans.estimate, ranked))
        for tried, fleet in enumerate(ranked):
            if hunt.over or (tried >= SIMULATED and hunt.incumbent.best is not None and not problem.fronted):
                break
            hunt.incumbent.consider(plans.placement(fleet))
        return hunt.solution()


PLACER = SailorStages()


class _Plans:
    """The table of the program: per number of leading blocks, the least time of every fleet that runs exactly them."""

    def __init__(self, hunt: FleetHunt, blocks: Blocks) -> None:
        self._hunt, self._pool, self._blocks = hunt, hunt.pool, blocks
        problem = hunt.problem
        self._order = list(blocks.depth_first_orders[0])
        self._slowest = hunt.kind != "latency"
        steps = problem.micro_batches if problem.in_micro_batches else 1
        first = [row[0] for row in self._pool.numbers]
        run = blocks.run_ns[:, first][self._order].astype(np.float64)
        self._ends = np.unique(np.linspace(0, len(run), min(len(run), BLOCKS_AT_MOST) + 1).astype(int)).tolist()
        self._stage = np.vstack([np.zeros(len(first)), np.cumsum(np.maximum(run, 0.0), axis=0)]) * steps
        self._unable = np.vstack([np.zeros(len(first)), np.cumsum(run < 0, axis=0)])
        cuts = np.append(cut_ns(problem, blocks)[self._order], 0).astype(np.float64)
        cuts[0] = 0.0
        self._cuts = cuts * (steps if self._slowest else 1)
        self._memory = np.array([problem.cluster.devices[row[0]].memory_bytes for row in self._pool.numbers])
        self._weights = np.append(0, np.cumsum(blocks.weight_bytes[self._order]))
        shape = tuple(count + 1 for count in self._pool.available)
        self._time: list[npt.NDArray[np.float64]] = []
        self._begin: list[npt.NDArray[np.int64]] = []
        self._kind: list[npt.NDArray[np.int64]] = []
        self._fill(shape)

    def _fill(self, shape: tuple[int, ...]) -> None:
        start = np.full(shape, np.inf)
        start[(0,) * len(shape)] = 0.0
        self._time, none = [start], np.zeros(shape, dtype=np.int64)
        self._begin, self._kind = [none], [none]
        for place in range(1, len(self._ends)):
            if self._hunt.over:
                return
            best, begin, chosen = np.full(shape, np.inf), none.copy(), none.copy()
            for before, kind in itertools.product(range(place), range(len(shape))):
                stage = self._stage_ns(before, place, kind)
                if not np.isfinite(stage):
                    continue
                known = self._shifted(self._time[before], kind)
                total = np.maximum(known, stage) if self._slowest else known + stage
                better = total < best
                best[better], begin[better], chosen[better] = total[better], before, kind
            self._time.append(best)
            self._begin.append(begin)
            self._kind.append(chosen)

    def _stage_ns(self, before: int, place: int, kind: int) -> float:
        """The time of the blocks between two ends on one device, with the transfers at both; infinite if too large."""
        low, high = self._ends[before], self._ends[place]
        too_large = self._weights[high] - self._weights[low] > self._memory[kind]
        if too_large or self._unable[high, kind] > self._unable[low, kind]:
            return float("inf")
        span = float(self._stage[high, kind] - self._stage[low, kind])
        edges = self._cuts[low] + (self._cuts[high] if self._slowest else 0.0)
        return span + float(edges)

    @staticmethod
    def _shifted(table: npt.NDArray[np.float64], kind: int) -> npt.NDArray[np.float64]:
        """The table with one device more of a type."""
        found = np.full_like(table, np.inf)
        source = [slice(None)] * table.ndim
        target = [slice(None)] * table.ndim
        source[kind], target[kind] = slice(0, -1), slice(1, None)
        found[tuple(target)] = table[tuple(source)]
        return found

    def fleets(self) -> list[Fleet]:
        """The fleets that can run all blocks; none where time was over before the table was full."""
        if len(self._time) < len(self._ends):
            return []
        return [tuple(row) for row in np.argwhere(np.isfinite(self._time[-1])).tolist()]

    def estimate(self, fleet: Fleet) -> FleetFigures:
        """The figures of the program's plan for a fleet."""
        price, time_ns = self._pool.price_per_hour(fleet), float(self._time[-1][fleet])
        return FleetFigures(fleet=fleet, price_per_hour=price, time_ns=time_ns)

    def placement(self, fleet: Fleet) -> Placement:
        """The program's plan for a fleet: its stages on the devices of each type in the order of the pool."""
        device = np.zeros(len(self._order), dtype=np.int64)
        left, place = list(fleet), len(self._ends) - 1
        while place:
            at = tuple(left)
            before, kind = int(self._begin[place][at]), int(self._kind[place][at])
            device[self._order[self._ends[before] : self._ends[place]]] = self._pool.numbers[kind][left[kind] - 1]
            left[kind] -= 1
            place = before
        return Placement(device=device[self._blocks.of_unit])
