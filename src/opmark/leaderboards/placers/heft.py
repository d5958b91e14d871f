"""HEFT, Heterogeneous Earliest Finish Time.

Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE TPDS
13(3), 2002: units by falling upward rank (mean times, mean transfers), each on the device where it finishes first, with
insertion into idle gaps. The paper's links are infinitely wide; here the estimate also knows that a link serves one
tensor at a time, that a tensor travels once per device, and that outputs return to the host.
"""

from dataclasses import replace

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.lists.list_schedule import BuiltSchedule, build_in_sequence, mean_travel_ns
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.simulator.simulate import fits, simulate


def mean_ns(problem: Problem) -> Integers:
    """Per unit, its mean time over the devices that can run it, in ns."""
    run = problem.arrays.run_ns
    able = run >= 0
    mean: Integers = np.rint(np.where(able, run, 0).sum(axis=1) / able.sum(axis=1)).astype(np.int64)
    return mean


def mean_upward_rank(problem: Problem) -> Integers:
    """The paper's rank, in ns: a unit's mean time plus the dearest of mean transfer plus rank of a reader."""
    from opmark.leaderboards.problem.sweeps import upward_rank

    arrays = problem.arrays
    rank: Integers = upward_rank(*arrays.packed, arrays.topological, mean_ns(problem), mean_travel_ns(problem))
    return rank


def heft_schedule(problem: Problem, *, contention: bool = True) -> tuple[BuiltSchedule, Integers]:
    """The schedule HEFT builds and the ranks behind it; without `contention` it is the paper's algorithm."""
    rank = mean_upward_rank(problem)
    position = np.empty(len(rank), dtype=np.int64)
    position[problem.arrays.topological] = np.arange(len(rank))
    return build_in_sequence(problem, np.lexsort((position, -rank)), contention=contention), rank


def cheapest(problem: Problem, placement: Placement) -> Placement:
    """With its strict order, its priorities only, or the default ones: the cheapest that fits into memory.

    A placement that leaves a device and returns where a problem forbids it is repaired first.
    """
    placement = held_together(problem, placement)
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
