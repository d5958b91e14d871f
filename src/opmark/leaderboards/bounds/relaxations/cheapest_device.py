"""The critical path at the price of the cheapest device: at least one device is paid for that long."""

from opmark.leaderboards.bounds.paths import critical_path_ns
from opmark.leaderboards.bounds.relaxation import Relaxation, is_latency
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups
from opmark.leaderboards.simulator.objectives.cost import price


class CheapestDevice(Relaxation):
    """At least one device is used, for at least as long as the longest path."""

    summary = "the critical path, paid for on the cheapest device alone"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For the cost objective."""
        del groups
        if problem.objective != "cost" or not is_latency(problem):
            return None
        latency = critical_path_ns(problem)
        return min(price(problem, {number}, latency) for number in range(problem.arrays.devices))


RELAXATION = CheapestDevice()
