"""The pace of a hunt: by the clock, or by counted steps, which are the same on every machine.

Two counted hunts over the same fleets find the same placements, as long as the clock ends neither.
"""

from abc import ABC, abstractmethod

from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import SEARCH, FleetHunt

# A counted search has so many steps at least; a counted hunt ends when this share of its steps is left.
FEWEST_STEPS, LAST_SHARE = 64, 0.05


class HuntPace(ABC):
    """The phases of a hunt, as shares of all of it, and the length of its searches."""

    def __init__(self, hunt: FleetHunt, *, seed: int) -> None:
        self._hunt, self._seed = hunt, seed

    @abstractmethod
    def over(self, share: float) -> bool:
        """True where this share of the hunt is spent."""

    @abstractmethod
    def search(self, fleet: Fleet, share: float) -> None:
        """Search for a placement on a fleet with this share of what is left."""


class ClockPace(HuntPace):
    """Shares of the time from now to the end of the hunt's budget."""

    def __init__(self, hunt: FleetHunt, *, seed: int) -> None:
        super().__init__(hunt, seed=seed)
        self._begun = hunt.incumbent.spent_share

    def over(self, share: float) -> bool:
        """True where this share of the time is spent."""
        return self._hunt.incumbent.spent_share > self._begun + share * (1.0 - self._begun)

    def search(self, fleet: Fleet, share: float) -> None:
        """Search for this share of the time left."""
        self._hunt.look(fleet, (SEARCH,), seconds=share * self._hunt.incumbent.left_s, seed=self._seed)


class CountedPace(HuntPace):
    """Every look that is worth it, and `steps` annealing steps in all searches together."""

    def __init__(self, hunt: FleetHunt, steps: int, *, seed: int) -> None:
        super().__init__(hunt, seed=seed)
        self._left, self._least = steps, max(FEWEST_STEPS, LAST_SHARE * steps)

    def over(self, share: float) -> bool:
        """True at the end, once the steps are spent: looks do not count."""
        return share >= 1.0 and self._left < self._least

    def search(self, fleet: Fleet, share: float) -> None:
        """Search with this share of the steps left."""
        steps = max(FEWEST_STEPS, int(share * self._left))
        self._left -= steps
        self._hunt.look(fleet, (SEARCH,), steps=steps, seed=self._seed)
