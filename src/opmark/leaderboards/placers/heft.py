"""HEFT, Heterogeneous Earliest Finish Time.

Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE TPDS
13(3), 2002: units by falling upward rank (mean times, mean transfers), each on the device where it finishes first, with
insertion into idle gaps. The paper's links are infinitely wide; here the estimate also knows that a link serves one
tensor at a time, that a tensor travels once per device, and that outputs return to the host.
"""

from dataclasses import replace

import numpy as np

from opmark.leaderboards.integers import Integers
from opmark.leaderboards.list_schedule import ListSchedule, mean_travel_ns
from opmark.leaderboards.placement import Placement, Solution, solution_of
from opmark.leaderboards.placer import Placer
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.simulator import fits, simulate


def mean_upward_rank(schedule: ListSchedule) -> Integers:
    """The paper's rank, in ns: a unit's mean time plus the dearest of mean transfer plus rank of a reader."""
    from opmark.leaderboards.sweeps import upward_rank

    arrays = schedule.problem.arrays
    able = arrays.run_ns >= 0
    mean = np.rint(np.where(able, arrays.run_ns, 0).sum(axis=1) / able.sum(axis=1)).astype(np.int64)
    rank: Integers = upward_rank(*arrays.packed, arrays.topological, mean, mean_travel_ns(schedule))
    return rank


def heft_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """The schedule HEFT builds and the ranks behind it; without `contention` it is the paper's algorithm."""
    schedule = ListSchedule(problem, contention=contention)
    rank = mean_upward_rank(schedule)
    position = np.empty(len(rank), dtype=np.int64)
    position[problem.arrays.topological] = np.arange(len(rank))
    for unit in np.lexsort((position, -rank)).tolist():
        _, device = min((end + schedule.return_ns(unit, device), device) for device, _, end in schedule.options(unit))
        schedule.put(unit, device)
    return schedule, rank


def cheapest(problem: Problem, placement: Placement) -> Placement:
    """With its strict order, its priorities only, or the default ones: the cheapest that fits into memory."""
    choices = [placement, replace(placement, order=None), Placement(device=placement.device)]
    schedules = [simulate(problem, choice) for choice in choices]
    costs = [(not fits(problem, schedule), schedule.cost_ns) for schedule in schedules]
    return choices[costs.index(min(costs))]


class Heft(Placer):
    """List scheduling by upward rank; the answer keeps HEFT's own order where that is cheaper."""

    summary = "upward rank, earliest finish with insertion (Topcuoglu 2002), links' queues estimated"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """HEFT's schedule."""
        del budget_s, seed
        schedule, rank = heft_schedule(problem)
        return solution_of(problem, cheapest(problem, schedule.placement(rank)), placer="heft")


PLACER = Heft()
