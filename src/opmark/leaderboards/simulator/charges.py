"""The devices that a placement is charged for, and the limits that it has to keep."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from opmark.core.units import format_ns
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES, UNITS
from opmark.leaderboards.problem.rules.profile import PublishedModel, profile_named
from opmark.leaderboards.problem.schedule import Schedule

# Prices are sums of decimal fractions, which binary numbers miss by less than this share.
_ROUNDING = Fraction(1, 10**9)


def used_devices(placement: Placement) -> set[int]:
    """The numbers of the devices that hold units, replicas included."""
    return set(placement.device.tolist()) | {number for row in placement.replicas.values() for number in row}


def hourly_steps(problem: Problem, used: set[int]) -> int:
    """The price per hour of the devices `used`, in 10⁻¹² of the currency, rounded up."""
    return -int(-price_per_hour(problem, used) * UNITS["$"] // 1)


def price_per_hour(problem: Problem, used: set[int]) -> Fraction:
    """The exact price per hour of the devices `used`."""
    return sum((Fraction(problem.cluster.devices[number].price_per_hour) for number in used), Fraction(0))


def missed_limit(problem: Problem, placement: Placement, schedule: Schedule) -> str:
    """The first limit that a placement misses, as a sentence; empty where it keeps all of them."""
    limits = problem.limits
    if limits.latency_ns and schedule.latency_ns > limits.latency_ns:
        return f"it takes {format_ns(schedule.latency_ns)}, and {format_ns(limits.latency_ns)} are allowed"
    if limits.price_per_hour:
        price = price_per_hour(problem, used_devices(placement))
        if price > _most(limits.price_per_hour):
            return f"its devices cost {float(price):g} per hour, and {limits.price_per_hour:g} are allowed"
    if limits.period_ns:
        period = OBJECTIVES.load("throughput").cost(
            problem, placement, schedule.latency_ns, profile_named(problem.profile)
        )
        if period > limits.period_ns:
            return f"a sample ends every {format_ns(float(period))}, and {format_ns(limits.period_ns)} are allowed"
    return ""


def rows_within_limits(
    problem: Problem, table: Integers, latencies_ns: Integers, rules: PublishedModel
) -> npt.NDArray[np.bool_]:
    """Per row of devices (rows x units, no replicas), true where it keeps the limits."""
    limits = problem.limits
    found = np.ones(len(table), dtype=bool)
    if limits.latency_ns:
        found &= latencies_ns <= limits.latency_ns
    if limits.price_per_hour:
        most = _most(limits.price_per_hour)
        found &= np.array([price_per_hour(problem, set(np.unique(row).tolist())) <= most for row in table], dtype=bool)
    if limits.period_ns:
        found &= OBJECTIVES.load("throughput").costs(problem, table, latencies_ns, rules) <= limits.period_ns
    return found


def _most(limit: float) -> Fraction:
    return Fraction(limit) * (1 + _ROUNDING)
