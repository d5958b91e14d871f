"""CPOP, Critical Path On a Processor.

Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE TPDS
13(3), 2002, section 4.3. Step numbers are those of the paper's algorithm.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.list_answer import list_answer
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_finish
from opmark.leaderboards.search.lists.ranks import downward_rank, edges_of_units, ready_order, upward_rank
from opmark.leaderboards.search.placer import Placer


def cpop_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """CPOP's schedule and its priorities (ns); without `contention` exactly the paper's algorithm."""
    # Steps 1 to 4: the priority of a task is the length of the longest path through it.
    downward = downward_rank(problem)
    priority = upward_rank(problem) + downward
    # Steps 5 to 12
    path = _critical_path(problem, priority, downward)
    # Step 13
    processor = _critical_path_processor(problem, path)
    pinned = np.full(len(priority), -1, dtype=np.int64)
    if processor is not None:
        pinned[path] = processor
    # Steps 14 to 22: of the ready tasks, assign the one of highest priority, to the critical-path processor if it is on
    # the path, else to the processor with the earliest finish time.
    order = ready_order(problem, priority)
    return schedule_by_earliest_finish(problem, order, contention=contention, pinned=pinned), priority


def _critical_path(problem: Problem, priority: Integers, downward: Integers) -> list[int]:
    """From the entry task of highest priority, always on to the successor of highest priority."""
    edges, value = edges_of_units(problem), priority.tolist()
    entries = np.flatnonzero(downward == 0).tolist()
    task = max(entries, key=lambda unit: (value[unit], -unit))
    path = [task]
    while edges[task]:
        task = max((edge.reader for edge in edges[task]), key=lambda unit: (value[unit], -unit))
        path.append(task)
    return path


def _critical_path_processor(problem: Problem, path: list[int]) -> int | None:
    """The device that runs the whole path in the least time; None if no device can run all of it."""
    groups = groups_of(problem)
    run_ns = groups.run_ns[groups.of_unit[path]]
    able = (run_ns >= 0).all(axis=0)
    if not able.any():
        return None
    return int(np.where(able, run_ns.sum(axis=0), np.iinfo(np.int64).max).argmin())


class Cpop(Placer):
    """List scheduling that keeps the critical path on one device."""

    summary = "critical path on one device, the rest by earliest finish (Topcuoglu 2002)"
    paper = Placer.cites(
        "Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing, "
        "IEEE TPDS 13(3)",
        2002,
        link="https://doi.org/10.1109/71.993206",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return CPOP's schedule."""
        del budget_s, seed
        schedule, priority = cpop_schedule(problem)
        return list_answer(problem, schedule, priority, placer="cpop")


PLACER = Cpop()
