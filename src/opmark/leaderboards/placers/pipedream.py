"""PipeDream's partitioner: stages of an optimal pipeline, each on as many replicas as pay off.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.1: f[ideal][m] =
min over the last stage and its replicas of max(f[before][m − replicas], time of the stage).
"""

import time
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.core.units import NS_PER_S
from opmark.leaderboards.blocks import Blocks, blocks_of
from opmark.leaderboards.lattice import Lattice, depth_first_orders, every_ideal, prefixes
from opmark.leaderboards.placement import Placement, Solution, solution_of
from opmark.leaderboards.placer import Placer
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.profiles.pipedream_stage import slowest_bandwidth
from opmark.leaderboards.simulator import fits, simulate

IDEALS_AT_MOST = 20_000


class PipeDream(Placer):
    """Devices are used from the fastest to the slowest; only problems that allow replicas get any."""

    summary = "optimal pipeline stages with replicas by dynamic programming (PipeDream, SOSP'19)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Over all ideals, or along a depth-first order where they are too many.

        Raises `PlacementError` where no split fits into memory.
        """
        del seed
        blocks = blocks_of(problem)
        deadline = time.monotonic() + budget_s / 2
        lattice = every_ideal(blocks, at_most=IDEALS_AT_MOST, deadline=deadline)
        if lattice is None:
            lattice = prefixes(blocks, depth_first_orders(blocks)[0])
        for size in (blocks.weight_bytes, blocks.size_bytes):
            placement = _stages(problem, blocks, lattice, size.astype(np.float64))
            if placement is not None and fits(problem, simulate(problem, placement)):
                return solution_of(problem, placement, placer="pipedream")
        raise PlacementError("no pipeline of contiguous stages fits into memory")


def _stages(problem: Problem, blocks: Blocks, lattice: Lattice, size: Any) -> Placement | None:
    from opmark.leaderboards import partition_dp

    arrays = problem.arrays
    total = np.where(blocks.run_ns < 0, np.inf, blocks.run_ns).sum(axis=0)
    order = np.lexsort((np.arange(arrays.devices), total))
    run = np.ascontiguousarray(blocks.run_ns[:, order].T, dtype=np.float64)
    per_byte = 0.0
    if problem.replication and arrays.devices > 1:
        per_byte = NS_PER_S / float(slowest_bandwidth(problem, list(range(arrays.devices))))
    compiled: Any = partition_dp.stages_and_replicas
    cost, parent, members = compiled(
        lattice.bits,
        lattice.offsets,
        lattice.child,
        lattice.added,
        run,
        blocks.weight_bytes.astype(np.float64),
        size,
        arrays.device_memory_bytes[order].astype(np.float64),
        per_byte,
        problem.replication,
        np.inf,
    )
    ideal, used = lattice.count - 1, arrays.devices
    if not np.isfinite(cost[ideal, used]):
        return None
    device = np.zeros(blocks.count, dtype=np.int64)
    replicas: dict[int, list[int]] = {}
    while ideal > 0:
        smaller, count = int(parent[ideal, used]), int(members[ideal, used])
        if count:
            own = order[used - count : used].tolist()
            gained = lattice.bits[ideal] & ~lattice.bits[smaller]
            for block in range(blocks.count):
                if gained[block // 62] >> block % 62 & 1:
                    device[block] = own[0]
            if count > 1:
                replicas[own[0]] = own[1:]
        ideal, used = smaller, used - max(1, count)
    return Placement(device=device[blocks.of_unit], replicas=replicas)


PLACER = PipeDream()
