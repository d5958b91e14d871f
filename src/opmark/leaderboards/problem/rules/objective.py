"""What a schedule costs; one file of `opmark.leaderboards.simulator.objectives` per objective."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from opmark.core.registry import Registry

if TYPE_CHECKING:
    from opmark.leaderboards.problem.integers import Integers
    from opmark.leaderboards.problem.placement import Placement
    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.problem.rules.profile import Profile
    from opmark.leaderboards.simulator.several_passes import Passes
    from opmark.leaderboards.simulator.simulate import Schedule


class Objective(ABC):
    """Less is better: whole ns, or 10⁻¹² of the cluster's currency."""

    summary: ClassVar[str]

    def passes(self, problem: "Problem") -> "Passes | None":
        """What is simulated: one pass through the graph (None), or several together; micro-batches of a step here."""
        if not problem.in_micro_batches:
            return None
        from opmark.leaderboards.simulator.passes.micro_batches import MICRO_BATCHES

        return MICRO_BATCHES

    @abstractmethod
    def cost(self, problem: "Problem", placement: "Placement", latency_ns: int, profile: "Profile") -> int | Fraction:
        """What one placement costs, whose passes through the graph take `latency_ns`."""

    @abstractmethod
    def costs(
        self, problem: "Problem", devices: "Integers", latencies_ns: "Integers", profile: "Profile"
    ) -> "Integers":
        """The same for rows of devices (rows x units) without replicas, rounded up; rows that cannot run stay as is."""

    def facts(self, problem: "Problem", placement: "Placement", schedule: "Schedule") -> dict[str, Any]:
        """What reports say beside the cost."""
        del schedule
        passes = self.passes(problem)
        return {} if passes is None else passes.facts(problem, placement)


OBJECTIVES: Registry[Objective] = Registry("opmark.leaderboards.simulator.objectives", "OBJECTIVE", "objective")
