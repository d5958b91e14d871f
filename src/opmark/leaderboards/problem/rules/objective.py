"""The objective of a problem: the cost of a schedule, in the unit that the problem shows.

One file of `opmark.leaderboards.simulator.objectives` per objective.
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from opmark.core.registry import Registry
from opmark.core.units import format_ns
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule

# Whole cost steps in one unit: ns for times, millionths of a millionth for money.
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "$": 10**12}


class Objective(ABC):
    """A cost in whole ns, or in 10⁻¹² of the cluster's currency; less is better."""

    summary: ClassVar[str]

    def passes(self, problem: Problem) -> str | None:
        """The name of the passes that are simulated together (a file of `simulator.passes`), None for a single pass."""
        return "micro-batches" if problem.in_micro_batches else None

    @abstractmethod
    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """The cost of one placement whose passes through the graph take `latency_ns`."""

    @abstractmethod
    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """The same for rows of devices (rows x units) without replicas, rounded up; rows that cannot run stay as is."""

    def facts(self, problem: Problem, placement: Placement, schedule: Schedule) -> dict[str, Any]:
        """Figures that reports show beside the cost."""
        del problem, placement, schedule
        return {}


OBJECTIVES: Registry[Objective] = Registry("opmark.leaderboards.simulator.objectives", "OBJECTIVE", "objective")


def in_unit(cost: int | Fraction, unit: str) -> int | float:
    """A cost in whole steps (or an exact fraction of them) in `unit`; a whole number only for ns."""
    steps = UNITS[unit]
    return round(cost) if steps == 1 else float(Fraction(cost) / steps)


def format_cost(cost: int | Fraction, unit: str) -> str:
    """A cost for people: times with their best prefix, money in its currency."""
    return f"${in_unit(cost, unit):.6g}" if unit == "$" else format_ns(float(cost))
