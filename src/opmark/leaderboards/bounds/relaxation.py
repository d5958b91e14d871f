"""A lower bound on a problem's cost; one file of `opmark.leaderboards.bounds.relaxations` per relaxation."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from opmark.core.registry import Registry
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups

# Models in which devices work side by side on one pass, and models in which only the busiest device counts.
EVENT_PROFILES = ("opsim1", "contention_free", "half_duplex_port", "source_bus_multicast")
LOAD_PROFILES = ("maxload_serial", "pipedream_stage")
NEVER_NS = 2**62


class Relaxation(ABC):
    """A bound that holds for every valid solution."""

    summary: ClassVar[str]

    @abstractmethod
    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """In whole cost steps; None if the relaxation does not apply to the problem's objective or rules."""


RELAXATIONS: Registry[Relaxation] = Registry("opmark.leaderboards.bounds.relaxations", "RELAXATION", "bound")


def profile_of(problem: Problem) -> str:
    """The problem's published model, spelt with underscores."""
    return problem.profile.replace("-", "_")


def is_latency(problem: Problem) -> bool:
    """True if the cost is at least the end of one simulated pass, or its price.

    This holds for a step of micro-batches and for requests for one network, but not for requests for several.
    """
    single = problem.objective != "throughput" and len(problem.arrivals) < 2
    return profile_of(problem) in EVENT_PROFILES and single


def is_load(problem: Problem) -> bool:
    """True if the cost is the work of the busiest server per sample."""
    name = profile_of(problem)
    return name in LOAD_PROFILES or (name in EVENT_PROFILES and problem.objective == "throughput")


def part_ns(problem: Problem) -> Integers:
    """U×D: the least time for which a unit can hold a slot if replicas may share it; -1 if it cannot run."""
    return _fastest(problem, 1)


def work_ns(problem: Problem) -> Integers:
    """U×D: the least slot time that all parts of a unit need together, on equal devices; -1 if it cannot run."""
    return _fastest(problem, 0)


def _fastest(problem: Problem, parts_run_side_by_side: int) -> Integers:
    run = problem.arrays.run_ns
    if not problem.replication or not is_latency(problem):
        return run
    found = run.copy()
    for unit, content in enumerate(problem.units):
        for number, device in enumerate(problem.cluster.devices):
            for index, value in enumerate(content.split_ns.get(device.type, ())):
                spent = round(value) + (device.dispatch_ns if round(value) else 0)
                times = 1 if parts_run_side_by_side else index + 2
                if index + 2 <= len(problem.cluster.devices):
                    found[unit, number] = min(found[unit, number], spent * times)
    return found


def of_groups(groups: Groups, table: Integers) -> Integers:
    """G×D sums of a U×D table, -1 where a group cannot run."""
    total = np.zeros((groups.count, table.shape[1]), dtype=np.int64)
    np.add.at(total, groups.of_unit, np.maximum(table, 0))
    total[~groups.allowed] = -1
    return total
