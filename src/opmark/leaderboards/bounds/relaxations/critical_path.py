"""The longest path with every unit on its fastest device and free transfers."""

from opmark.leaderboards.bounds.paths import critical_path_ns, served_paths_ns
from opmark.leaderboards.bounds.relaxation import EVENT_PROFILES, Relaxation, is_latency, profile_of
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


RELAXATION = CriticalPath()
