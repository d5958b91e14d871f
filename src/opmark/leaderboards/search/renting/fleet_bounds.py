"""Lower bounds on the time of any placement on a fleet, from its units' times alone.

The work bound is the dual of a linear program that spreads every unit freely over all slots: any prices y of a type's
time with Σ slots · y = 1 give T ≥ Σ over units of the cheapest y · time. Two price rows are tried: all equal, and each
type's speed on the whole graph, which is tight where one type is a constant factor faster than another.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.search.renting.device_pool import DevicePool


class FleetBounds:
    """Bounds for every fleet of one pool; paths are computed once per set of types."""

    def __init__(self, pool: DevicePool) -> None:
        self._pool = pool
        problem = pool.problem
        steps = problem.micro_batches if problem.in_micro_batches else 1
        runs = np.array([1 if unit.phase == "update" else steps for unit in problem.units])
        # The compiled times are rounded and have dispatch added, as the simulator counts them.
        run = np.where(problem.arrays.run_ns < 0, np.inf, problem.arrays.run_ns)
        self._once: npt.NDArray[np.float64] = np.array([run[:, list(row)].min(axis=1) for row in pool.numbers]).T
        self._work = self._once * runs[:, None]
        slots = problem.arrays.device_slots
        self._slots = np.array([slots[list(row)].max() for row in pool.numbers])
        self._paths: dict[tuple[int, ...], float] = {}
        # Replicas of a latency problem share units in parts of their own times, which these bounds do not read.
        self._known = not problem.replication or pool.inner_objective == "throughput"
        self._single_pass = pool.inner_objective != "serving"

    def least_ns(self, fleet: Sequence[int]) -> float:
        """The time of one pass, or of one sample of a full pipeline, that no placement on the fleet can beat."""
        if not (self._known and self._single_pass):
            return 0.0
        types = [index for index, count in enumerate(fleet) if count]
        work, slots = self._work[:, types], self._slots[types] * np.array([fleet[index] for index in types])
        whole = np.where(np.isfinite(work), work, 0.0).sum(axis=0)
        speed = np.where(np.isfinite(work).all(axis=0) & (whole > 0), 1.0 / np.maximum(whole, 1.0), 0.0)
        prices = [np.ones(len(types))] + ([speed] if (speed > 0).all() else [])
        least = max(float((work * row).min(axis=1).sum() / np.dot(slots, row)) for row in prices)
        if self._pool.inner_objective == "throughput":
            return least * (1 - 1e-9)
        return max(least, self._path_ns(tuple(types))) * (1 - 1e-9)

    def _path_ns(self, types: tuple[int, ...]) -> float:
        """The longest path of one pass, each unit on its fastest type of these."""
        from opmark.leaderboards.problem.sweeps import upward_rank

        found = self._paths.get(types)
        if found is None:
            arrays = self._pool.problem.arrays
            fastest = self._once[:, list(types)].min(axis=1).astype(np.int64)
            free = np.zeros(len(arrays.tensor_bytes), dtype=np.int64)
            ranks = upward_rank(*arrays.packed, arrays.topological, fastest, free)
            found = self._paths[types] = float(ranks.max())
        return found
