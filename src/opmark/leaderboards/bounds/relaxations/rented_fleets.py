"""Rented fleets: every fleet of a pool, with the bound on its time; the least value that can meet the goal."""

import math
from fractions import Fraction

from opmark.leaderboards.bounds.relaxation import EVENT_PROFILES, Relaxation, profile_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import UNITS
from opmark.leaderboards.search.groups import Groups
from opmark.leaderboards.search.renting.device_pool import DevicePool, Fleet
from opmark.leaderboards.search.renting.fleet_bounds import FleetBounds
from opmark.leaderboards.search.renting.fleet_hunt import FleetFigures
from opmark.leaderboards.simulator.fronts import mean_time_ns

# With more fleets than this, counting them costs more than it tells.
FLEETS_AT_MOST = 20_000


class RentedFleets(Relaxation):
    """Placements are relaxed to the work of their units, counts are not relaxed at all."""

    summary = "all fleets of a pool, each with its work spread freely and its longest path"

    def bound(self, problem: Problem, groups: Groups) -> int | None:
        """For problems with limits, and for rent."""
        del groups
        if not (problem.limits or problem.objective == "rent") or profile_of(problem) not in EVENT_PROFILES:
            return None
        pool = DevicePool.of(problem)
        if math.prod(count + 1 for count in pool.available) > FLEETS_AT_MOST:
            return None
        least = FleetBounds(pool)

        def figures(fleet: Fleet) -> FleetFigures:
            return FleetFigures(fleet=fleet, price_per_hour=pool.price_per_hour(fleet), time_ns=least.least_ns(fleet))

        kept = [one for one in map(figures, pool.fleets()) if one.shortfall(problem.limits) <= 1.0]
        if not kept:
            return None
        if problem.fronted:
            return math.floor(mean_time_ns(problem.limits, [one.point for one in kept]) * (1 - Fraction(1, 10**9)))
        values = [one.value(problem) for one in kept]
        steps = UNITS["$"] if problem.objective in {"cost", "rent"} else 1
        return math.floor(min(values) * steps * (1 - 1e-9))


RELAXATION = RentedFleets()
