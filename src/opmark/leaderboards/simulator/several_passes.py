"""Several passes through a graph simulated together: the requests of a trace, or the micro-batches of a step.

One file of `opmark.leaderboards.simulator.passes` per kind; an objective names the kind that it needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from opmark.core.registry import Registry
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import Schedule


class Passes(ABC):
    """Copies of a problem's graph on one cluster, simulated together by the same rules."""

    @abstractmethod
    def schedule(self, problem: Problem, placement: Placement, profile: PublishedModel) -> Schedule:
        """All passes; the objective makes a cost of `latency_ns`. Raises `PlacementError` as `simulate` does.

        `expanded` holds the graph of the copies, their placement and their schedule.
        """

    @abstractmethod
    def rows(
        self, problem: Problem, devices: Integers, priorities: Integers | None, profile: PublishedModel
    ) -> tuple[Integers, Integers]:
        """The same latency per row of devices (rows x units), the largest int64 if it cannot run, and peak bytes.

        `priorities` has one row, or one per row of devices; without it the default rank is used.
        """

    def timed(self, problem: Problem, placement: Placement, profile: PublishedModel) -> Callable[[Problem], int] | None:
        """The latency in ns of `placement` as a function of the problem with other times; None where nothing is saved.

        All that does not depend on times is worked out once. The function raises as `schedule` does.
        """
        del problem, placement, profile
        return None

    @abstractmethod
    def graph(self, problem: Problem, placement: Placement) -> tuple[Problem, Integers]:
        """The graph of the copies for one placement, and a device for each of its units."""

    def release_ns(self, problem: Problem, name: str) -> int:
        """The time before which the copy of a unit or input called `name` cannot begin."""
        del problem, name
        return 0

    def latency_of(self, problem: Problem, ends_ns: Iterable[tuple[str, int]]) -> int:
        """`latency_ns` from the end of each unit and transfer of the graph."""
        del problem
        return max((end for _, end in ends_ns), default=0)

    def facts(self, problem: Problem, placement: Placement) -> dict[str, Any]:
        """Figures about the passes that reports show."""
        del problem, placement
        return {}


PASSES: Registry[Passes] = Registry("opmark.leaderboards.simulator.passes", "PASSES", "kind of passes")


def passes_of(problem: Problem) -> Passes | None:
    """The passes that the problem's objective names; None for a single pass through the graph."""
    name = OBJECTIVES.load(problem.objective).passes(problem)
    return None if name is None else PASSES.load(name)
