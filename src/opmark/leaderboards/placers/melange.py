"""Mélange's integer program: counts of each device type, so that the load fits at the least price.

Griggs, Liu, Yu, Kim, Chiang, Cheung, Stoica, "Mélange: Cost Efficient Large Language Model Serving by Exploiting GPU
Heterogeneity", 2024, section 5: slices of load are assigned to device types, every type's count holds its slices, and
the price is minimal. Here the slices are the classes of units, and a device holds as many as the goal's time allows.
Under a budget the least time is found by bisection; a front is made of ever shorter times. Transfers and order are
unknown to the program, so a fleet that misses the goal is followed by one with less load per device.
"""

import math

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.integer_program import IntegerProgram
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.device_pool import Fleet
from opmark.leaderboards.search.renting.fleet_hunt import THOROUGH, FleetHunt

# Where a placement misses the goal, devices are loaded to this share of what was assumed before.
LIGHTER, TRIES = 0.85, 8
# Where a front is asked for, every time is so much shorter than the one before.
SHORTER, POINTS_AT_MOST = 0.8, 16
BISECTIONS = 12
SOLVER_SHARE = 0.1


class Melange(Placer):
    """Knows prices, speeds and counts, but no links."""

    summary = "integer program over counts and slices of load (Mélange 2024)"
    rents = True
    paper = Placer.cites(
        "Griggs, Liu, Yu, Kim, Chiang, Cheung, Stoica: Mélange: cost efficient large language model serving by "
        "exploiting GPU heterogeneity, arXiv:2404.14527",
        2024,
        link="https://arxiv.org/abs/2404.14527",
    )

    def prepare(self) -> None:
        """Import the solver."""
        import scipy.optimize  # noqa: F401

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the placement on the program's fleet. Raises `PlacementError` where it never meets the goal."""
        hunt = FleetHunt(problem, "melange", budget_s)
        program = _Counts(hunt)
        if problem.fronted:
            program.sweep(seed)
            return hunt.solution()
        limit_ns = float(problem.limits.latency_ns or problem.limits.period_ns)
        limit_ns = limit_ns or program.least_time_ns(problem.limits.price_per_hour or math.inf)
        for _ in range(TRIES):
            fleet = program.cheapest(limit_ns)
            if fleet is None or hunt.over:
                break
            if hunt.meets_goal(hunt.look(fleet, THOROUGH[hunt.kind], seed=seed)):
                break
            limit_ns *= LIGHTER
        return hunt.solution()


PLACER = Melange()


class _Counts:
    """The program: variables are counts in units of one and the share of each class on each type."""

    def __init__(self, hunt: FleetHunt) -> None:
        self._hunt, self._pool = hunt, hunt.pool
        problem = hunt.problem
        groups = groups_of(problem)
        first = [row[0] for row in self._pool.numbers]
        run = groups.run_ns[:, first].astype(np.float64)
        steps = problem.micro_batches if problem.in_micro_batches else 1
        self._run: npt.NDArray[np.float64] = np.where(run < 0, np.inf, run * steps)

    def cheapest(self, limit_ns: float) -> Fleet | None:
        """The cheapest fleet whose devices all work at most `limit_ns`; None where no fleet does."""
        program = IntegerProgram()
        counts = [[program.binary() for _ in range(most)] for most in self._pool.available]
        dearest = max(float(self._pool.prices.max()), 1e-9)
        bill = {
            column: -float(price) / dearest for row, price in zip(counts, self._prices(), strict=True) for column in row
        }
        program.add({0: 1.0, **bill}, 0.0)
        load: list[dict[int, float]] = [dict.fromkeys(row, 1.0) for row in counts]
        for times in self._run:
            shares = {kind: program.real(1.0) for kind in np.flatnonzero(np.isfinite(times)).tolist()}
            program.add(dict.fromkeys(shares.values(), 1.0), 1.0)
            for kind, column in shares.items():
                load[kind][column] = -float(times[kind]) / limit_ns
        for row in load:
            program.add(row, 0.0)
        values = program.solve(min(SOLVER_SHARE * self._hunt.incumbent.left_s, 1.0))
        if values is None:
            return None
        fleet = tuple(round(sum(float(values[column]) for column in row)) for row in counts)
        return fleet if self._pool.can_run(fleet) else self._with_memory(fleet)

    def sweep(self, seed: int) -> None:
        """Look at the cheapest fleets for shorter and shorter times, until they cost more than the reference price."""
        hunt, limits = self._hunt, self._hunt.problem.limits
        limit_ns = float(limits.latency_ns or limits.period_ns)
        for _ in range(POINTS_AT_MOST):
            fleet = None if hunt.over else self.cheapest(limit_ns)
            if fleet is None or self._pool.price_per_hour(fleet) > limits.price_per_hour:
                break
            hunt.look(fleet, THOROUGH[hunt.kind], seed=seed)
            limit_ns *= SHORTER

    def least_time_ns(self, budget: float) -> float:
        """The least time in which some fleet within the budget does all the work, by bisection."""
        high = float(np.where(np.isfinite(self._run), self._run, 0.0).sum(axis=0).max())
        low = high / sum(self._pool.available) / 64
        for _ in range(BISECTIONS):
            middle = math.sqrt(low * high)
            fleet = None if self._hunt.over else self.cheapest(middle)
            if fleet is not None and self._pool.price_per_hour(fleet) <= budget:
                high = middle
            else:
                low = middle
        return high

    def _prices(self) -> list[float]:
        """Prices of the types; where nothing costs anything, every device costs the same."""
        return self._pool.prices.tolist() if self._pool.priced else [1.0] * len(self._pool.types)

    def _with_memory(self, fleet: Fleet) -> Fleet | None:
        """The cheapest fleet that holds the weights and all devices of `fleet`."""
        larger = [one for one in self._pool.fleets() if all(a >= b for a, b in zip(one, fleet, strict=True))]
        return min(larger, key=lambda one: (self._pool.price_per_hour(one), one), default=None)
