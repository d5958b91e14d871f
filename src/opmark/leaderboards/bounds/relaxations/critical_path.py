"""The longest path with every unit on its fastest device and free transfers."""

import numpy as np

from opmark.leaderboards.bounds.relaxation import EVENT_PROFILES, NEVER_NS, Relaxation, is_latency, part_ns, profile_of
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups


class CriticalPath(Relaxation):
    """Units of a path never overlap, whatever their devices."""

    summary = "longest path, every unit on its fastest device, transfers free"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For one pass through the graph; of several networks that are served, what most requests have to wait for."""
        del groups
        if len(problem.arrivals) > 1 and profile_of(problem) in EVENT_PROFILES:
            return served_paths_ns(problem)
        if problem.objective == "cost" or not (is_latency(problem) or profile_of(problem) == "atomic_calls"):
            return None
        return critical_path_ns(problem)


def critical_path_ns(problem: Problem) -> int:
    """The length of the path, in ns."""
    return int(_paths_ns(problem).max())


def served_paths_ns(problem: Problem) -> int:
    """The tail of all requests' latencies if each took no longer than the longest path of its own network, in ns."""
    from opmark.leaderboards.simulator.passes.requests import TAIL_PERCENT, percentile

    paths = _paths_ns(problem)
    number = {unit.name: index for index, unit in enumerate(problem.units)}
    longest = [max((int(paths[number[name]]) for name in stream.units), default=0) for stream in problem.arrivals]
    counts = [len(stream.arrival_ns) for stream in problem.arrivals]
    return int(percentile(np.repeat(np.array(longest, dtype=np.int64), counts), TAIL_PERCENT))


def _paths_ns(problem: Problem) -> Integers:
    """Per unit, the longest path that begins there."""
    from opmark.leaderboards.problem.sweeps import upward_rank

    arrays = problem.arrays
    table = part_ns(problem)
    fastest = np.where(table < 0, NEVER_NS, table).min(axis=1)
    free = np.zeros(len(arrays.tensor_bytes), dtype=np.int64)
    found: Integers = upward_rank(*arrays.packed, arrays.topological, fastest, free)
    return found


RELAXATION = CriticalPath()
