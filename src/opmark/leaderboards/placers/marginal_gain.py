"""Greedy by marginal gain: from the best single device, the device that brings the most for its price joins next."""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import THOROUGH, FleetFigures, FleetHunt


class MarginalGain(Placer):
    """It never gives a device back, so it misses fleets without the device that it began with."""

    summary = "adds the device that gains most for its price until none gains"
    rents = True

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the placement on the last fleet. Raises `PlacementError` where it never meets the goal."""
        hunt = FleetHunt(problem, "marginal-gain", budget_s)
        best = _first(hunt, seed)
        while best is not None and not hunt.over:
            longer = [one for one in _with_one_more(hunt, best.fleet) if hunt.pool.can_run(one)]
            looks = (hunt.look(fleet, seed=seed) for fleet in longer if not hunt.over)
            found = [one for one in looks if one is not None]
            better = [one for one in found if hunt.rank(one) < hunt.rank(best)]
            if not better:
                break
            start = best
            best = min(better, key=lambda one: (-_gain_per_price(hunt, start, one), hunt.rank(one)))
        if best is not None and not hunt.over:
            hunt.look(best.fleet, THOROUGH[hunt.kind], seed=seed)
        return hunt.solution()


PLACER = MarginalGain()


def _first(hunt: FleetHunt, seed: int) -> FleetFigures | None:
    """The best single device; where none holds the network, the best fleet of the smallest size that does."""
    size = 0
    for fleet in hunt.pool.fleets():
        if hunt.found and sum(fleet) > size:
            break
        size = sum(fleet)
        hunt.look(fleet, seed=seed)
        if hunt.over:
            break
    return hunt.best()


def _with_one_more(hunt: FleetHunt, fleet: Fleet) -> list[Fleet]:
    rows = [tuple(count + (index == one) for index, count in enumerate(fleet)) for one in range(len(fleet))]
    return [row for row in rows if all(a <= b for a, b in zip(row, hunt.pool.available, strict=True))]


def _gain_per_price(hunt: FleetHunt, before: FleetFigures, after: FleetFigures) -> float:
    """The share by which the shortfall falls (where there is one) or the value, per unit of money added."""
    problem = hunt.problem
    old, new = before.shortfall(problem.limits), after.shortfall(problem.limits)
    if old <= 1.0:
        old, new = before.value(problem), after.value(problem)
    added = after.price_per_hour - before.price_per_hour
    return (old - new) / old / max(added, 1e-9)
