"""A cost that takes several passes through a graph at once: the requests of a trace, or micro-batches of a step."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers

if TYPE_CHECKING:
    from opmark.leaderboards.problem.placement import Placement
    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.problem.rules.profile import Profile
    from opmark.leaderboards.simulator.simulate import Schedule


class Passes(ABC):
    """Copies of a problem's graph on one cluster, simulated together by the same rules."""

    @abstractmethod
    def schedule(self, problem: "Problem", placement: "Placement", profile: "Profile") -> "Schedule":
        """All passes; `latency_ns` is what the objective makes a cost of. Raises `PlacementError` as `simulate` does.

        `expanded` holds the graph of the copies and when they ran.
        """

    @abstractmethod
    def rows(
        self, problem: "Problem", devices: Integers, priorities: Integers | None, profile: "Profile"
    ) -> tuple[Integers, Integers]:
        """The same latency per row of devices (rows x units), the largest int64 where it cannot run, and peak bytes.

        `priorities` has one row, or one per row of devices; without it the default rank is used.
        """

    @abstractmethod
    def graph(self, problem: "Problem", placement: "Placement") -> "tuple[Problem, Integers]":
        """What `expanded` holds of one placement: the graph of the copies and a device for each of its units."""

    def release_ns(self, problem: "Problem", name: str) -> int:
        """When the copy of a unit or input called `name` may begin at all."""
        del problem, name
        return 0

    def latency_of(self, problem: "Problem", ends_ns: Iterable[tuple[str, int]]) -> int:
        """`latency_ns` from when each unit and transfer of the graph ended."""
        del problem
        return max((end for _, end in ends_ns), default=0)

    def facts(self, problem: "Problem", placement: "Placement") -> dict[str, Any]:
        """What reports say about the passes."""
        del problem, placement
        return {}


def taken_rows(offsets: Integers, values: Integers, chosen: Integers) -> tuple[Integers, Integers, Integers]:
    """The `chosen` of compressed rows: their offsets, their values, and for each value the place of its row."""
    lengths = np.diff(offsets)[chosen]
    found = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(lengths, out=found[1:])
    place = np.repeat(np.arange(len(chosen)), lengths)
    within = np.arange(len(place)) - found[place]
    return found, values[offsets[chosen][place] + within], place
