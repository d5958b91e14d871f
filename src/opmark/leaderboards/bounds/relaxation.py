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
    single = not problem.pipelined and len(problem.arrivals) < 2
    return profile_of(problem) in EVENT_PROFILES and single


def is_load(problem: Problem) -> bool:
    """True if the cost is the work of the busiest server per sample."""
    name = profile_of(problem)
    return name in LOAD_PROFILES or (name in EVENT_PROFILES and problem.objective == "throughput")


def part_ns(problem: Problem) -> Integers:
    """U×D: the least time for which a unit can hold a slot if replicas or parts may share it; -1 if it cannot run."""
    return _fastest(problem, 1)


def work_ns(problem: Problem) -> Integers:
    """U×D: the least slot time that all parts of a unit need together, on equal devices; -1 if it cannot run.

    In a step of micro-batches, forward and backward units count once for each of them, on whatever devices.
    """
    run = _fastest(problem, 0)
    if not (problem.in_micro_batches and is_latency(problem)):
        return run
    times = np.array([1 if unit.phase == "update" else problem.micro_batches for unit in problem.units])
    found: Integers = np.where(run < 0, -1, run * times[:, None])
    return found


def has_splits(problem: Problem) -> bool:
    """True if a solution may divide units: bounds that know whole units only do not hold then."""
    return any(unit.splits for unit in problem.units)


def _fastest(problem: Problem, parts_run_side_by_side: int) -> Integers:
    run = _split_or_whole(problem, parts_run_side_by_side)
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


def _split_or_whole(problem: Problem, parts_run_side_by_side: int) -> Integers:
    """The cheapest of a unit and its parts; cuts and joins come on top, so a bound without them stays valid."""
    run = problem.arrays.run_ns
    if not has_splits(problem):
        return run
    found = run.copy()
    for unit, content in enumerate(problem.units):
        for split in content.splits:
            for number, device in enumerate(problem.cluster.devices):
                value = round(split.exec_ns.get(device.type, -1))
                if value >= 0:
                    spent = value + (device.dispatch_ns if value else 0)
                    found[unit, number] = min(
                        found[unit, number], spent if parts_run_side_by_side else spent * split.parts
                    )
    return found


def of_groups(groups: Groups, table: Integers) -> Integers:
    """G×D sums of a U×D table, -1 where a group cannot run."""
    total = np.zeros((groups.count, table.shape[1]), dtype=np.int64)
    np.add.at(total, groups.of_unit, np.maximum(table, 0))
    total[~groups.allowed] = -1
    return total
