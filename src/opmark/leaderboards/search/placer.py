"""The interface of a placement algorithm; one file of `opmark.leaderboards.placers` per algorithm."""

from abc import ABC, abstractmethod
from typing import ClassVar

from opmark.core.registry import Registry
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem


class Placer(ABC):
    """A placement algorithm. The same problem and seed must give the same cost while the budget is not binding."""

    # One line for the board.
    summary: ClassVar[str]

    def prepare(self) -> None:  # noqa: B027 (most have nothing to prepare)
        """Import and compile what `place` needs: that is no planning time."""

    @abstractmethod
    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """A device for every unit, found within `budget_s` seconds on one thread; the last complete one counts."""


PLACERS: Registry[Placer] = Registry("opmark.leaderboards.placers", "PLACER", "placer")
