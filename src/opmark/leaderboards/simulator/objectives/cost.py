"""Cost: the price of every device that is used, for the duration of one pass."""

from fractions import Fraction

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import UNITS, Objective
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST

NS_PER_HOUR = 3_600_000_000_000


class Cost(Objective):
    """Σ price per hour of used devices x latency, in 10⁻¹² of the currency, rounded up."""

    summary = "money for one pass: used devices x price x time"

    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """Devices of replicas count as used."""
        del profile
        used = set(placement.device.tolist()) | {number for row in placement.replicas.values() for number in row}
        return price(problem, used, latency_ns)

    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """One price per row."""
        del profile
        found = latencies_ns.copy()
        for index, (row, latency) in enumerate(zip(devices, latencies_ns.tolist(), strict=True)):
            if latency < INVALID_COST:
                found[index] = price(problem, set(np.unique(row).tolist()), latency)
        return found


def price(problem: Problem, used: set[int], latency_ns: int) -> int:
    """The price of the devices `used` for `latency_ns`, in 10⁻¹² of the currency, rounded up."""
    per_hour = sum(Fraction(problem.cluster.devices[number].price_per_hour) for number in used)
    return -int(-per_hour * latency_ns * UNITS["$"] // NS_PER_HOUR)


OBJECTIVE = Cost()
