"""What a schedule costs; one file of `opmark.leaderboards.objectives` per objective."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from opmark.core.registry import Registry

if TYPE_CHECKING:
    from opmark.leaderboards.integers import Integers
    from opmark.leaderboards.placement import Placement
    from opmark.leaderboards.problem import Problem
    from opmark.leaderboards.profile import Profile


class Objective(ABC):
    """Less is better: whole ns, or 10⁻¹² of the cluster's currency."""

    summary: ClassVar[str]

    @abstractmethod
    def cost(self, problem: "Problem", placement: "Placement", latency_ns: int, profile: "Profile") -> int | Fraction:
        """What one placement costs, whose single pass through the graph takes `latency_ns`."""

    @abstractmethod
    def costs(
        self, problem: "Problem", devices: "Integers", latencies_ns: "Integers", profile: "Profile"
    ) -> "Integers":
        """The same for rows of devices (rows x units) without replicas, rounded up; rows that cannot run stay as is."""


OBJECTIVES: Registry[Objective] = Registry("opmark.leaderboards.objectives", "OBJECTIVE", "objective")
