"""PipeDream's partitioner: stages of an optimal pipeline, each on as many replicas as pay off.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.1: f[ideal][m] =
min over the last stage and its replicas of max(f[before][m − replicas], time of the stage).
"""

import time
from functools import cache
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.core.units import NS_PER_S
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.ideals import Lattice, depth_first_orders, every_ideal, prefixes
from opmark.leaderboards.search.cuts.repair import quick_split
from opmark.leaderboards.search.cuts.stepping import run_in_slices
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.simulator.published.pipedream_stage import slowest_bandwidth

IDEALS_AT_MOST = 20_000
BUDGET_SHARE, LISTING_SHARE = 0.9, 0.5


class PipeDream(Placer):
    """Devices are used from the fastest to the slowest; only problems that allow replicas get any."""

    summary = "optimal pipeline stages with replicas by dynamic programming (PipeDream, SOSP'19)"

    def prepare(self) -> None:
        """Compile the program."""
        _compile()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Over all ideals, or along a depth-first order where they are too many or the budget ends first.

        Raises `PlacementError` where no split fits into memory.
        """
        del seed
        incumbent = Incumbent(problem, "pipedream", budget_s * BUDGET_SHARE)
        blocks = blocks_of(problem)
        quick = quick_split(problem, blocks)
        listed_by = time.monotonic() + budget_s * LISTING_SHARE
        lattice = every_ideal(blocks, at_most=IDEALS_AT_MOST, deadline=listed_by)
        chain = prefixes(blocks, depth_first_orders(blocks)[0])
        for shape in (lattice, chain):
            for size in (blocks.weight_bytes, blocks.size_bytes):
                if shape is None or incumbent.left_s <= 0:
                    continue
                # what takes its time must leave some for the chain
                deadline = incumbent.deadline - (0.2 * incumbent.left_s if shape is lattice else 0.0)
                placement = _stages(problem, blocks, shape, size.astype(np.float64), deadline)
                if placement is not None and incumbent.consider(placement):
                    return incumbent.solution()
        if quick is None:
            raise PlacementError("no pipeline of contiguous stages fits into memory")
        incumbent.consider(quick)
        return incumbent.solution()


@cache
def _compile() -> None:
    PLACER.place(smallest_problem(), budget_s=60.0, seed=0)


def _stages(problem: Problem, blocks: Blocks, lattice: Lattice, size: Any, deadline: float) -> Placement | None:
    from opmark.leaderboards.search.cuts import ideal_programs as partition_dp

    arrays = problem.arrays
    total = np.where(blocks.run_ns < 0, np.inf, blocks.run_ns).sum(axis=0)
    order = np.lexsort((np.arange(arrays.devices), total))
    run = np.ascontiguousarray(blocks.run_ns[:, order].T, dtype=np.float64)
    per_byte = 0.0
    if problem.replication and arrays.devices > 1:
        per_byte = NS_PER_S / float(slowest_bandwidth(problem, list(range(arrays.devices))))
    compiled: Any = partition_dp.stages_and_replicas
    count, devices = lattice.count, arrays.devices
    cost = np.full((count, devices + 1), np.inf)
    cost[0, 0] = 0
    parent, members = np.full(cost.shape, -1, dtype=np.int64), np.zeros(cost.shape, dtype=np.int64)
    stamp, queue = np.full(count, -1, dtype=np.int64), np.empty(count, dtype=np.int64)
    room = (stamp, queue, np.zeros((count, devices)), np.zeros(count), np.zeros(count))
    weight, memory = blocks.weight_bytes.astype(np.float64), arrays.device_memory_bytes[order].astype(np.float64)
    rows = (lattice.bits, lattice.offsets, lattice.child, lattice.added)

    def grow(steps: int, at: Integers) -> None:
        tables = (cost, parent, members)
        compiled(rows, run, weight, size, memory, per_byte, problem.replication, np.inf, steps, tables, room, at)

    if not run_in_slices(grow, count, deadline):
        return None
    ideal, used = count - 1, devices
    if not np.isfinite(cost[ideal, used]):
        return None
    device = np.zeros(blocks.count, dtype=np.int64)
    replicas: dict[int, list[int]] = {}
    while ideal > 0:
        smaller, shared = int(parent[ideal, used]), int(members[ideal, used])
        if shared:
            own = order[used - shared : used].tolist()
            gained = lattice.bits[ideal] & ~lattice.bits[smaller]
            for block in range(blocks.count):
                if gained[block // 62] >> block % 62 & 1:
                    device[block] = own[0]
            if shared > 1:
                replicas[own[0]] = own[1:]
        ideal, used = smaller, used - max(1, shared)
    return Placement(device=device[blocks.of_unit], replicas=replicas)


PLACER = PipeDream()
