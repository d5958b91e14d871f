"""FastT: list placement along the critical path with enforced order, then critical work split over idle devices.

Yi et al., "FastT: Fast training of distributed DNNs with white-box heuristics", Middleware 2020: DPOS (algorithm 1)
places and orders operations, OS-DPOS (algorithm 2) splits critical ones. Here whole stages are split, the only split
that problems with replication have.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.list_answer import cheapest_variant
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_finish
from opmark.leaderboards.search.lists.ranks import edges_of_units, falling_order, upward_rank
from opmark.leaderboards.search.lists.travel import mean_travel_ns
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import best_single_device


def dpos_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """DPOS's schedule and its ranks (ns)."""
    # Algorithm 1: rank the operations by their longest path to the exit, at mean times and transfers.
    rank = upward_rank(problem)
    # Place the critical path on the fastest device with memory left.
    pinned = np.full(problem.arrays.units, -1, dtype=np.int64)
    path = critical_path(problem, rank)
    pinned[path] = _critical_path_devices(problem, path)
    # Place every other operation, by falling rank, where it finishes first; it may use an idle gap.
    order = falling_order(problem, rank)
    return schedule_by_earliest_finish(problem, order, contention=contention, pinned=pinned), rank


def critical_path(problem: Problem, rank: Integers) -> list[int]:
    """From the unit of highest rank along the edges that determine its rank, to an exit."""
    travel, edges = mean_travel_ns(problem).tolist(), edges_of_units(problem)
    value = rank.tolist()
    unit = int(rank.argmax())
    path = [unit]
    while edges[unit]:
        _, unit = min((-(travel[tensor] + value[reader]), reader) for tensor, reader in edges[unit])
        path.append(unit)
    return path


def _critical_path_devices(problem: Problem, path: list[int]) -> list[int]:
    """A device per unit of the path: the one that runs the path fastest, the next one once its memory is full."""
    arrays, groups = problem.arrays, groups_of(problem)
    run_ns = groups.run_ns[groups.of_unit[path]]
    path_ns = np.where(run_ns >= 0, run_ns, np.inf).sum(axis=0)
    fastest_first = np.argsort(path_ns, kind="stable").tolist()
    held = [0] * arrays.devices
    device = fastest_first.pop(0)
    placed: set[int] = set()
    devices = []
    for group in groups.of_unit[path].tolist():
        size = 0 if group in placed else int(groups.size_bytes[group])
        while fastest_first and held[device] + size > arrays.device_memory_bytes[device]:
            device = fastest_first.pop(0)
        placed.add(group)
        held[device] += size
        devices.append(device)
    return devices


class FastT(Placer):
    """The answer keeps the order of the list schedule if that is cheaper, as FastT's executor does."""

    summary = (
        "critical path on the fastest device with room, then stages split over idle devices (FastT, Middleware'20)"
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return DPOS's schedule, with replicas if the problem allows them; or the best single device if cheaper."""
        del seed
        incumbent = Incumbent(problem, "fastt", budget_s)
        schedule, rank = dpos_schedule(problem)
        incumbent.consider(cheapest_variant(problem, schedule.placement(rank)))
        if problem.replication or incumbent.best is None:
            incumbent.consider(Placement(device=best_single_device(problem)[0]))
        if problem.replication:
            replicated(problem, incumbent)
        return incumbent.solution()


PLACER = FastT()
