"""Serving: the tail latency of a stored trace of requests, several of which are in flight on one placement."""

from fractions import Fraction
from typing import Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import Objective
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.passes._requests.copies import request_copies
from opmark.leaderboards.simulator.passes.requests import TAIL_PERCENT, percentile


class Serving(Objective):
    """The 99th percentile of the requests' latencies, by the nearest rank; median and misses stand beside it."""

    summary = "ns that 99 % of a trace's requests do not exceed"

    def passes(self, problem: Problem) -> str | None:
        """One per request."""
        del problem
        return "requests"

    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """The tail latency itself."""
        del problem, placement, profile
        return latency_ns

    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """The tail latencies themselves."""
        del problem, devices, profile
        return latencies_ns

    def facts(self, problem: Problem, placement: Placement, schedule: Schedule) -> dict[str, Any]:
        """Requests, p50, p99, and those later than their target, of all and per network."""
        del placement
        if schedule.requests_ns is None:
            return {}
        copies = request_copies(problem)
        facts = _facts(schedule.requests_ns, copies.target_ns)
        if len(problem.arrivals) > 1:
            rows = [copies.network == number for number in range(len(problem.arrivals))]
            facts["networks"] = [_facts(schedule.requests_ns[own], copies.target_ns[own]) for own in rows]
        return facts


def _facts(latencies_ns: Integers, target_ns: Integers) -> dict[str, Any]:
    missed = int(np.count_nonzero(latencies_ns > target_ns))
    return {
        "requests": len(latencies_ns),
        "p50_ns": percentile(latencies_ns, 50),
        "p99_ns": percentile(latencies_ns, TAIL_PERCENT),
        "missed": missed,
        "missed_fraction": missed / len(latencies_ns),
    }


OBJECTIVE = Serving()
