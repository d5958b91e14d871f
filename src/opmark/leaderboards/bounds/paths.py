"""Longest paths of a problem with every unit on its fastest device and free transfers."""

import numpy as np

from opmark.leaderboards.bounds.relaxation import NEVER_NS, part_ns
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem


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
