"""Throughput: the time between two samples of a full pipeline, set by its busiest server."""

from fractions import Fraction
from typing import Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import Objective
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.simulator.steady_state import server_loads


class Throughput(Objective):
    """Slots, links and ports each work on their part of every sample; how long one sample takes does not matter."""

    summary = "ns between two samples of a full pipeline"

    def passes(self, problem: Problem) -> str | None:
        """A single one: the load of a server per sample needs no more."""
        del problem
        return None

    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """The busiest server's time per sample."""
        del latency_ns
        return server_loads(problem, placement, profile).bottleneck_ns

    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """The same without replicas, compiled."""
        from opmark.leaderboards.simulator import load_tracker

        arrays = problem.arrays
        tracker = load_tracker.load_tracker(arrays, contention=profile.contention)
        table = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1, arrays.units)
        compiled: Any = load_tracker.bottleneck_rows
        found: Integers = compiled(tracker, arrays.host, arrays.tensor_output, table)
        return np.where(latencies_ns == INVALID_COST, INVALID_COST, found)


OBJECTIVE = Throughput()
