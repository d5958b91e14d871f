"""FastT: list placement along the critical path with enforced order, then splits of critical operations.

Yi et al., "FastT: Fast training of distributed DNNs with white-box heuristics", Middleware 2020: DPOS (algorithm 1)
places and orders operations; OS-DPOS (algorithm 2) takes those of the critical path, the longest first, and splits each
in the way that lets DPOS end soonest, until one brings nothing. The executor enforces DPOS's order. Where a problem
offers no splits but replicas, whole stages are divided over idle devices instead.
"""

from contextlib import suppress

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution, SplitChoice
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.list_answer import cheapest_variant
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_finish
from opmark.leaderboards.search.lists.ranks import edges_of_units, falling_order, mean_run_ns, upward_rank
from opmark.leaderboards.search.lists.travel import mean_travel_ns
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.replication import replicated
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.search.split_answers import SplitAnswers, ways

BUDGET_SHARE = 0.9


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


def os_dpos(problem: Problem, answers: SplitAnswers) -> dict[str, SplitChoice]:
    """Algorithm 2: the splits that DPOS does best with; every schedule on the way is offered as an answer."""
    chosen: dict[str, SplitChoice] = {}
    schedule, rank = dpos_schedule(problem)
    _offer(answers, chosen, schedule, rank)
    finish = int(schedule.end_ns.max())
    offered, mean = ways(problem), mean_run_ns(problem)
    # Line 3: the operations of the critical path by falling time.
    path = sorted(critical_path(problem, rank), key=lambda unit: (-int(mean[unit]), unit))
    for name in [problem.units[unit].name for unit in path if problem.units[unit].name in offered]:
        # Lines 5 to 12: every dimension and every number of parts.
        best: SplitChoice | None = None
        for choice in offered[name]:
            if answers.left_s <= 0:
                return chosen
            with suppress(PlacementError):
                schedule, rank = dpos_schedule(answers.posed({**chosen, name: choice}))
                _offer(answers, {**chosen, name: choice}, schedule, rank)
                if int(schedule.end_ns.max()) < finish:
                    finish, best = int(schedule.end_ns.max()), choice
        # Lines 13 to 17: the graph with the best split is the next one; without one the search ends.
        if best is None:
            break
        chosen[name] = best
    return chosen


def _offer(answers: SplitAnswers, chosen: dict[str, SplitChoice], schedule: ListSchedule, rank: Integers) -> None:
    """The schedule in its own order; where that is not valid, its cheapest variant."""
    posed = answers.posed(chosen)
    enforced = schedule.placement(rank)
    if Incumbent(posed, "fastt", 0.0).value_of(enforced) is None:
        enforced = cheapest_variant(posed, enforced)
    answers.consider(chosen, enforced)


class FastT(Placer):
    """The answer keeps the order of the list schedule, as FastT's executor does."""

    summary = "critical path on the fastest device with room, critical operations split (FastT, Middleware'20)"
    paper = Placer.cites(
        "Yi et al.: Fast training of deep learning models over multiple GPUs, Middleware",
        2020,
        link="https://doi.org/10.1145/3423211.3425675",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return OS-DPOS's schedule; with replicas, or the best single device if cheaper, where there are replicas."""
        del seed
        answers = SplitAnswers(problem, "fastt", budget_s * BUDGET_SHARE)
        os_dpos(problem, answers)
        if answers.best is not None and not problem.replication:
            return answers.solution()
        incumbent = Incumbent(problem, "fastt", answers.left_s)
        incumbent.consider(Placement(device=best_single_device(problem)[0]))
        if problem.replication:
            replicated(problem, incumbent)
        if answers.value is not None and (incumbent.value is None or answers.value <= incumbent.value):
            return answers.solution()
        return incumbent.solution()


PLACER = FastT()
