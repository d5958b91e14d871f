"""Fronts of money against time: the cost of several placements that answer one problem together.

Zitzler, Thiele, "Multiobjective optimization using evolutionary algorithms", PPSN 1998: the hypervolume is the area
that a front dominates, up to a reference point. The cost is the rest of the reference rectangle, divided by the
reference price: the mean, over all budgets from 0 to the reference price, of the least time that the front offers
within the budget. A budget that buys nothing counts as the reference time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import PublishedModel, profile_named
from opmark.leaderboards.simulator.charges import price_per_hour, used_devices


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class MoneyAndTime:
    """One point of a front: the price per hour of the devices that are used, and the ns of a pass or of a sample."""

    price_per_hour: Fraction
    time_ns: Fraction


def point_of(
    problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel | None = None
) -> MoneyAndTime:
    """The point of a placement whose pass takes `latency_ns`: with a limit on the period, that is its time."""
    time_ns: int | Fraction = latency_ns
    if problem.limits.period_ns:
        rules = profile_named(problem.profile) if profile is None else profile
        time_ns = OBJECTIVES.load("throughput").cost(problem, placement, latency_ns, rules)
    return MoneyAndTime(price_per_hour=price_per_hour(problem, used_devices(placement)), time_ns=Fraction(time_ns))


def mean_time_ns(limits: GoalLimits, points: Iterable[MoneyAndTime]) -> Fraction:
    """The mean of the least time over all budgets up to the limit on the price; the limit on the time where none is."""
    most = Fraction(limits.price_per_hour)
    least, area, budget = Fraction(limits.latency_ns or limits.period_ns), Fraction(0), Fraction(0)
    for point in sorted(points):
        if point.price_per_hour >= most:
            break
        area += least * (point.price_per_hour - budget)
        budget = point.price_per_hour
        least = min(least, point.time_ns)
    return (area + least * (most - budget)) / most


def undominated(points: Iterable[MoneyAndTime]) -> list[MoneyAndTime]:
    """The points that no other one matches in both price and time, the cheapest first."""
    found: list[MoneyAndTime] = []
    for point in sorted(points):
        if not found or point.time_ns < found[-1].time_ns:
            found.append(point)
    return found
