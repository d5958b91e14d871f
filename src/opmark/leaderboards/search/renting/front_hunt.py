"""Many fleets, one front: quick looks, then longer searches where the front can still gain most.

The gain of a point is the fall of the front's cost that it brings: the hypervolume contribution of Emmerich, Beume,
Naujoks, "An EMO algorithm using the hypervolume measure as selection criterion", EMO 2005.
"""

from collections.abc import Sequence

from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import THOROUGH, FleetHunt
from opmark.leaderboards.search.renting.front_incumbent import FrontIncumbent
from opmark.leaderboards.search.renting.pace import HuntPace

# The shares of the hunt after which quick looks and thorough ones end.
QUICK_SHARE, THOROUGH_SHARE = 0.4, 0.6
# A search gets this share of what is left, and may bring a fleet so much nearer to its bound; less each time.
SEARCH_SHARE, NEARER, FADES = 0.15, 0.25, 0.4
# Searches of one fleet in all.
SEARCHES_AT_MOST = 4


def hunt_front(hunt: FleetHunt, fleets: Sequence[Fleet], pace: HuntPace) -> None:
    """Widen the front with placements on `fleets` at a pace, or until nothing can gain."""
    front = hunt.incumbent
    assert isinstance(front, FrontIncumbent)

    def over(share: float) -> bool:
        return hunt.over or pace.over(share)

    def hope(fleet: Fleet) -> float:
        best = hunt.optimistic(fleet)
        return front.gain(best.price_per_hour, best.time_ns)

    ordered = sorted(fleets, key=lambda fleet: (-hope(fleet), fleet))
    for fleet in ordered:
        if front.front and over(QUICK_SHARE):
            break
        if not hunt.hopeless(fleet):
            hunt.look(fleet)
    for fleet in _by_gain(hunt, front, fleets, {}):
        if over(THOROUGH_SHARE):
            break
        hunt.look(fleet, THOROUGH[hunt.kind])
    searched: dict[Fleet, int] = {}
    while not over(1.0):
        ranked = [
            fleet for fleet in _by_gain(hunt, front, fleets, searched) if searched.get(fleet, 0) < SEARCHES_AT_MOST
        ]
        if not ranked:
            break
        fleet = ranked[0]
        searched[fleet] = searched.get(fleet, 0) + 1
        pace.search(fleet, SEARCH_SHARE)


def _by_gain(
    hunt: FleetHunt, front: FrontIncumbent, fleets: Sequence[Fleet], searched: dict[Fleet, int]
) -> list[Fleet]:
    """The fleets of several devices that may gain something, the largest expected gain first."""
    gains = {}
    for fleet in fleets:
        known = hunt.found.get(fleet)
        if sum(fleet) < 2 or known is None or hunt.hopeless(fleet):
            continue
        step = NEARER * FADES ** searched.get(fleet, 0)
        hoped_ns = known.time_ns * (1 - step) + hunt.optimistic(fleet).time_ns * step
        gains[fleet] = front.gain(known.price_per_hour, hoped_ns)
    return sorted((fleet for fleet, gain in gains.items() if gain > 0), key=lambda fleet: (-gains[fleet], fleet))
