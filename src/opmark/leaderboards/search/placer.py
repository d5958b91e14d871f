"""The interface of a placement algorithm; one file of `opmark.leaderboards.placers` per algorithm."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opmark.core.registry import Registry
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The publication of an algorithm: authors, title and venue, then its year (0 where it is not told).

    `link` and `code` are addresses on the web, empty where none is known.
    """

    reference: str
    year: int = 0
    link: str = ""
    code: str = ""

    @property
    def text(self) -> str:
        """The reference with its year."""
        return f"{self.reference}, {self.year}" if self.year else self.reference


class Placer(ABC):
    """A placement algorithm. The same problem and seed must give the same cost while the budget is not binding.

    One with a `paper` is a published algorithm, one that is `own` was made for OpMark, any other is a baseline.
    """

    # One line for the board.
    summary: ClassVar[str]
    paper: ClassVar[Paper | None] = None
    own: ClassVar[bool] = False

    @staticmethod
    def cites(reference: str, year: int, *, link: str = "", code: str = "") -> Paper:
        """The `paper` of a class; `Paper` describes the arguments."""
        return Paper(reference=reference, year=year, link=link, code=code)

    # True where it chooses devices of a pool; only tracks that name such placers run them.
    rents: ClassVar[bool] = False

    def prepare(self) -> None:  # noqa: B027 (most have nothing to prepare)
        """Import and compile what `place` needs: that is no planning time."""

    @abstractmethod
    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """A device for every unit, found within `budget_s` seconds on one thread; the last complete one counts."""

    def place_from(
        self, problem: Problem, known: Sequence[Placement], *, budget_s: float, seed: int, steps: int = 0
    ) -> Solution:
        """The same for a placer that can start from valid placements; another one does not look at them.

        With `steps`, a search ends after so many of its steps, wherever the clock stands.
        """
        del known, steps
        return self.place(problem, budget_s=budget_s, seed=seed)


PLACERS: Registry[Placer] = Registry("opmark.leaderboards.placers", "PLACER", "placer")


def placing_names() -> tuple[str, ...]:
    """The placers that place on given devices: all but those that choose devices of a pool."""
    return tuple(name for name in PLACERS.names() if not PLACERS.load(name).rents)
