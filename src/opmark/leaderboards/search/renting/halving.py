"""Many fleets, little time: quick looks by the order of their bounds, then longer searches on fewer and fewer fleets.

Successive halving: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013.
"""

from collections.abc import Sequence

from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import THOROUGH, FleetFigures, FleetHunt
from opmark.leaderboards.search.renting.pace import HuntPace

# The shares of the hunt after which quick looks and the thorough placers end.
QUICK_SHARE, THOROUGH_SHARE = 0.45, 0.6
# The fleets that thorough placers see, and those of each round of searches: first such as were never searched.
THOROUGH_FLEETS, ROUNDS = 8, (2, 1)


def hunt_by_halving(hunt: FleetHunt, fleets: Sequence[Fleet], pace: HuntPace) -> None:
    """Look for the best of `fleets` at a pace, or until all others are no better."""
    ordered = sorted(fleets, key=lambda fleet: (hunt.rank(hunt.optimistic(fleet)), fleet))
    for fleet in ordered:
        if hunt.over or _spent(hunt, pace, QUICK_SHARE):
            break
        if not hunt.hopeless(fleet):
            hunt.look(fleet)
    for fleet in _promising(hunt, fleets)[:THOROUGH_FLEETS]:
        if _spent(hunt, pace, THOROUGH_SHARE):
            break
        hunt.look(fleet, THOROUGH[hunt.kind])
    if not hunt.pool.priced:
        return  # without prices there is nothing to weigh against time
    for number, count in enumerate(ROUNDS):
        promising = _promising(hunt, fleets)
        fresh = [fleet for fleet in promising if number == 0 and fleet not in hunt.searched]
        chosen = (fresh or promising)[:count]
        for place, fleet in enumerate(chosen):
            if not hunt.over and not _beaten(hunt, fleet):
                pace.search(fleet, 1.0 / (len(ROUNDS) - number) / (len(chosen) - place))


def _spent(hunt: FleetHunt, pace: HuntPace, share: float) -> bool:
    return pace.over(share) and hunt.meets_goal(hunt.best())


def _promising(hunt: FleetHunt, fleets: Sequence[Fleet]) -> list[Fleet]:
    """The fleets of several devices that can still win, the best figures first."""
    asked = set(fleets)
    known: list[FleetFigures] = [one for one in hunt.found.values() if one.fleet in asked and sum(one.fleet) > 1]
    return [one.fleet for one in sorted(known, key=hunt.rank) if not _beaten(hunt, one.fleet)]


def _beaten(hunt: FleetHunt, fleet: Fleet) -> bool:
    """True where a fleet's bound is no better than the best answer, which is not its own."""
    best = hunt.best()
    return best is not None and best.fleet != fleet and hunt.hopeless(fleet)
