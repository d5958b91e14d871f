"""Rent: the price per hour of every device that is used, whether it works or waits."""

from fractions import Fraction

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import Objective
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.simulator.charges import hourly_steps, used_devices


class Rent(Objective):
    """Σ price per hour of used devices, in 10⁻¹² of the currency, rounded up. Limits keep it from being nothing."""

    summary = "money per hour: the price of all used devices"

    def passes(self, problem: Problem) -> str | None:
        """A single one: devices are paid for by the hour, and a limit on the period reads loads alone."""
        del problem
        return None

    def cost(self, problem: Problem, placement: Placement, latency_ns: int, profile: PublishedModel) -> int | Fraction:
        """Devices of replicas count as used."""
        del latency_ns, profile
        return hourly_steps(problem, used_devices(placement))

    def costs(self, problem: Problem, devices: Integers, latencies_ns: Integers, profile: PublishedModel) -> Integers:
        """One price per row."""
        del profile
        found = latencies_ns.copy()
        for index, (row, latency) in enumerate(zip(devices, latencies_ns.tolist(), strict=True)):
            if latency < INVALID_COST:
                found[index] = hourly_steps(problem, set(np.unique(row).tolist()))
        return found


OBJECTIVE = Rent()
