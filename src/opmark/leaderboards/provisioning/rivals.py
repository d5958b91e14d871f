"""The best answers so far, kept in order, so that a fleet is compared with all others at once."""

from bisect import bisect_right
from dataclasses import dataclass, field

from opmark.leaderboards.provisioning.fleet import Fleet

Rank = tuple[float, float, float]


@dataclass(slots=True)
class Rivals:
    """The two best ranks of different fleets, and the front of price and time. No fleet is its own rival."""

    leaders: list[tuple[Rank, Fleet]] = field(default_factory=list)
    # Price, time and fleet, the cheapest first.
    corners: list[tuple[float, float, Fleet]] = field(default_factory=list)

    def add(self, fleet: Fleet, rank: Rank, price: float, time: float) -> None:
        """Count an answer, which is better than any earlier one of its fleet."""
        self.leaders = sorted([(rank, fleet), *(one for one in self.leaders if one[1] != fleet)])[:2]
        kept: list[tuple[float, float, Fleet]] = []
        for corner in sorted([(price, time, fleet), *self.corners]):
            if not kept or corner[1] < kept[-1][1]:
                kept.append(corner)
        self.corners = kept

    def lead(self, fleet: Fleet, rank: Rank) -> bool:
        """True where another fleet has this rank or a better one."""
        return any(best <= rank for best, other in self.leaders if other != fleet)

    def dominate(self, fleet: Fleet, price: float, time: float) -> bool:
        """True where another fleet costs no more and is no slower."""
        place = bisect_right(self.corners, price, key=lambda corner: corner[0])
        # Of those that cost no more the last one is the fastest; where that is the fleet itself, the one before it.
        return any(corner[1] <= time for corner in self.corners[max(0, place - 2) : place] if corner[2] != fleet)
