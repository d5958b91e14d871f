"""Hypervolume: a front of money against time, as the mean of its least time over all budgets up to a limit."""

from fractions import Fraction

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES, Objective
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.simulator.charges import price_per_hour
from opmark.leaderboards.simulator.fronts import MoneyAndTime, mean_time_ns, point_of


class Hypervolume(Objective):
    """The limits are the reference point. One placement is a front of one point; a solution may add others."""

    summary = "ns: the mean over all budgets up to a reference price of the least time within the budget"

    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """The cost of the front that this placement alone makes."""
        return mean_time_ns(problem.limits, [point_of(problem, placement, latency_ns, profile)])

    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """The same per row, rounded up."""
        times = latencies_ns
        if problem.limits.period_ns:
            times = OBJECTIVES.load("throughput").costs(problem, devices, latencies_ns, profile)
        found = latencies_ns.copy()
        for index, (row, latency, time_ns) in enumerate(
            zip(devices, latencies_ns.tolist(), times.tolist(), strict=True)
        ):
            if latency < INVALID_COST:
                price = price_per_hour(problem, set(np.unique(row).tolist()))
                point = MoneyAndTime(price_per_hour=price, time_ns=Fraction(time_ns))
                found[index] = -int(-mean_time_ns(problem.limits, [point]) // 1)
        return found


OBJECTIVE = Hypervolume()
