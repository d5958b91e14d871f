"""FastT: list placement along the critical path, orders enforced, then critical work split over idle devices.

Yi et al., "FastT: Fast training of distributed DNNs with white-box heuristics", Middleware 2020: DPOS (algorithm 1)
ranks operations by the longest way to the end at mean times and transfers, puts the critical path on the device that
runs it fastest as long as memory lasts, and every other operation where it ends first, into idle gaps; OS-DPOS
(algorithm 2) then splits critical operations. A problem that allows replicas splits whole stages, so that is what is
tried here, stage by stage.
"""

import numpy as np

from opmark.leaderboards.placers.heft import cheapest, mean_upward_rank
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.lists.list_schedule import (
    BuiltSchedule,
    build_in_sequence,
    mean_travel_ns,
    reader_rows,
)
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import best_single_device


def critical_path(problem: Problem, rank: Integers) -> list[int]:
    """From the unit of highest rank along what makes its rank, to the end."""
    arrays = problem.arrays
    travel = mean_travel_ns(problem)
    unit = int(np.lexsort((np.arange(len(rank)), -rank))[0])
    path = [unit]
    offsets, _ = reader_rows(problem)
    while offsets[unit] < offsets[unit + 1]:
        ways = []
        for tensor in arrays.output_tensors[arrays.output_offsets[unit] : arrays.output_offsets[unit + 1]].tolist():
            first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
            ways += [(-int(travel[tensor] + rank[reader]), reader) for reader in arrays.consumer_units[first:last]]
        unit = int(min(ways)[1])
        path.append(unit)
    return path


def dpos_schedule(problem: Problem, *, contention: bool = True) -> tuple[BuiltSchedule, Integers]:
    """DPOS's schedule and its ranks."""
    arrays, groups = problem.arrays, groups_of(problem)
    rank = mean_upward_rank(problem)
    path = critical_path(problem, rank)
    forced = np.full(arrays.units, -1, dtype=np.int64)
    table = groups.run_ns[groups.of_unit[path]]
    total = np.where(table >= 0, table, 0).sum(axis=0) + np.where(table < 0, float("inf"), 0.0).sum(axis=0)
    order = np.argsort(total, kind="stable").tolist()
    held, position = [0] * arrays.devices, 0
    seen: set[int] = set()
    for unit in path:
        group = int(groups.of_unit[unit])
        size = 0 if group in seen else int(groups.size_bytes[group])
        while position < len(order) - 1 and held[order[position]] + size > arrays.device_memory_bytes[order[position]]:
            position += 1
        seen.add(group)
        held[order[position]] += size
        forced[unit] = order[position]
    place = np.empty(arrays.units, dtype=np.int64)
    place[arrays.topological] = np.arange(arrays.units)
    return build_in_sequence(problem, np.lexsort((place, -rank)), contention=contention, forced=forced), rank


class FastT(Placer):
    """The list schedule is kept in its order where that is cheaper, as FastT's executor does."""

    summary = (
        "critical path on the fastest device with room, then stages split over idle devices (FastT, Middleware'20)"
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """DPOS, with replicas where the problem allows them; the best single device where that is cheaper."""
        del seed
        incumbent = Incumbent(problem, "fastt", budget_s)
        schedule, rank = dpos_schedule(problem)
        incumbent.consider(cheapest(problem, schedule.placement(rank)))
        if problem.replication or incumbent.best is None:
            incumbent.consider(Placement(device=best_single_device(problem)[0]))
        if problem.replication:
            replicated(problem, incumbent)
        return incumbent.solution()


PLACER = FastT()
