"""The colocation class that keeps its fastest device busy the longest."""

import numpy as np

from opmark.leaderboards.bounds.relaxation import (
    LOAD_PROFILES,
    NEVER_NS,
    Relaxation,
    is_latency,
    is_load,
    of_groups,
    part_ns,
    profile_of,
)
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups


class LargestClass(Relaxation):
    """A class shares one device and its slots; replicas can divide it by the number of devices at most."""

    summary = "the largest colocation class on its fastest device"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For latency and for throughput."""
        arrays = problem.arrays
        if problem.objective == "cost" or not (is_latency(problem) or is_load(problem)):
            return None
        share = arrays.devices if problem.replication and is_load(problem) else 1
        table = of_groups(groups, part_ns(problem))
        slots = 1 if profile_of(problem) in LOAD_PROFILES else arrays.device_slots
        spread = np.where(groups.allowed, -(-table // (slots * share)), NEVER_NS)
        return int(spread.min(axis=1).max())


RELAXATION = LargestClass()
