"""The price of the work alone: every class on the device whose slot time is cheapest, and no device ever idle."""

import numpy as np

from opmark.leaderboards.bounds.relaxation import Relaxation, is_latency, of_groups, work_ns
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import UNITS
from opmark.leaderboards.search.groups import Groups
from opmark.leaderboards.simulator.objectives.cost import NS_PER_HOUR


class WorkPrice(Relaxation):
    """A used device is paid for at least as long as its slots work."""

    summary = "every class where its time is cheapest, no device idle"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For the cost objective."""
        if problem.objective != "cost" or not is_latency(problem):
            return None
        price = np.array([device.price_per_hour for device in problem.cluster.devices])
        table = of_groups(groups, work_ns(problem)) * (price / problem.arrays.device_slots)
        total = float(np.where(groups.allowed, table, np.inf).min(axis=1).sum())
        return int(total * (1 - 1e-9) * UNITS["$"] / NS_PER_HOUR)


RELAXATION = WorkPrice()
