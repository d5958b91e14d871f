"""Latency: from the start until the last graph output is back on the host and everything has ended."""

from fractions import Fraction

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import Objective
from opmark.leaderboards.problem.rules.profile import PublishedModel


class Latency(Objective):
    """The time at which the simulation ends."""

    summary = "ns of one pass through the graph"

    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """The latency itself."""
        del problem, placement, profile
        return latency_ns

    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """The latencies themselves."""
        del problem, devices, profile
        return latencies_ns


OBJECTIVE = Latency()
