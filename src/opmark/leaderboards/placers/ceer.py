"""Ceer: one instance type, chosen by the predicted cost of each type and count.

Hafeez, Gandhi, "Empirical Analysis and Modeling of Compute Times of CNN Operations on AWS Cloud", IISWC 2020: the time
of an iteration is the sum of predicted operation times, divided among the devices, plus a communication time that grows
with their number; the type and count of least predicted cost is rented. Nothing is simulated before the choice.
"""

import numpy as np

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import cut_ns
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import FleetFigures, FleetHunt, front_fleets


class CheapestInstanceType(Placer):
    """Types are never mixed. A choice that misses the goal is followed by the next best prediction.

    Where a front is asked for, the choices are those on the predicted front.
    """

    summary = "the instance type and count of least predicted cost (Ceer, IISWC'20)"
    rents = True
    paper = Placer.cites(
        "Hafeez, Gandhi: Empirical analysis and modeling of compute times of CNN operations on AWS cloud, IISWC",
        2020,
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return a quick placement on the chosen devices. Raises `PlacementError` where no choice meets the goal."""
        hunt = FleetHunt(problem, "ceer", budget_s)
        steps = problem.micro_batches if problem.in_micro_batches else 1
        exchange_ns = steps * float(np.median(cut_ns(problem, blocks_of(problem))))

        def predicted(fleet: Fleet) -> FleetFigures:
            time_ns = steps * hunt.pool.work(fleet) / sum(fleet) + exchange_ns * (sum(fleet) - 1)
            return FleetFigures(fleet=fleet, price_per_hour=hunt.pool.price_per_hour(fleet), time_ns=time_ns)

        equal = [fleet for fleet in hunt.pool.fleets() if hunt.pool.equal(fleet)]
        if problem.fronted:
            for fleet in front_fleets(map(predicted, equal)):
                hunt.look(fleet, seed=seed)
            return hunt.solution()
        for fleet in sorted(equal, key=lambda one: (hunt.rank(predicted(one)), one)):
            if hunt.over or hunt.meets_goal(hunt.look(fleet, seed=seed)):
                break
        return hunt.solution()


PLACER = CheapestInstanceType()
