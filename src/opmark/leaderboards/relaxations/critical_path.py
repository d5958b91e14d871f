"""The longest path with every unit on its fastest device and free transfers."""

import numpy as np

from opmark.leaderboards.groups import Groups
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.relaxation import NEVER_NS, Relaxation, is_latency, part_ns, profile_of


class CriticalPath(Relaxation):
    """Units of a path never overlap, whatever their devices."""

    summary = "longest path, every unit on its fastest device, transfers free"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For one pass through the graph."""
        del groups
        if problem.objective == "cost" or not (is_latency(problem) or profile_of(problem) == "atomic_calls"):
            return None
        return critical_path_ns(problem)


def critical_path_ns(problem: Problem) -> int:
    """The length of the path, in ns."""
    from opmark.leaderboards.sweeps import upward_rank

    arrays = problem.arrays
    table = part_ns(problem)
    fastest = np.where(table < 0, NEVER_NS, table).min(axis=1)
    free = np.zeros(len(arrays.tensor_bytes), dtype=np.int64)
    return int(upward_rank(*arrays.packed, arrays.topological, fastest, free).max())


RELAXATION = CriticalPath()
