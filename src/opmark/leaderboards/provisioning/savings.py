"""The saving of one entry over another on the pools of a track: per pool, and the median with its interval.

The interval of a median follows from the signs of the differences alone: scipy's `quantile_test`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from opmark.core.errors import NothingSelectedError, PlacementError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.pools import GOALS
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.simulator.evaluation import evaluate

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSaving:
    """Costs of two entries on one pool, in whole steps; None where an entry misses the goal."""

    problem: str
    goal: str
    cost: int | None
    other_cost: int | None

    @property
    def saving(self) -> float | None:
        """The share of the other entry's cost that is saved, negative where more is spent; None without both costs."""
        return None if self.cost is None or not self.other_cost else 1.0 - self.cost / self.other_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingSummary:
    """The median saving over `pools` pools with its 95 % interval; `better` and `worse` count pools."""

    pools: int
    better: int
    worse: int
    median: float
    low: float
    high: float
    most: float


def savings_of(track: Track, entry: str, other: str) -> list[PoolSaving]:
    """The costs of the stored answers of `entry` beside those of `other`, simulated now, by pool.

    Raises `NothingSelectedError` for an entry without answers.
    """
    solutions = track.solutions()
    for name in (entry, other):
        if name not in solutions:
            known = ", ".join(solutions) or "none"
            raise NothingSelectedError(f"no answers of {name!r} are stored", where=track.name, hint=f"known: {known}")
    return [
        PoolSaving(
            problem=problem.name,
            goal=goal_of(problem),
            cost=_cost(problem, solutions[entry].get(problem.name)),
            other_cost=_cost(problem, solutions[other].get(problem.name)),
        )
        for problem in track.problems()
    ]


def _cost(problem: Problem, solution: Solution | str | None) -> int | None:
    """The cost of a stored answer; None where there is none, or where it is not valid."""
    if not isinstance(solution, Solution):
        return None
    try:
        return evaluate(problem, solution).cost
    except PlacementError:
        return None


def goal_of(problem: Problem) -> str:
    """The goal of a pool, as recipes call it; the objective of any other problem."""
    found = [goal for goal, objective in GOALS.items() if objective == problem.objective]
    if len(found) > 1:
        found = [goal for goal in found if goal.endswith("per-sample") == bool(problem.limits.period_ns)]
    return found[0] if found else problem.objective


def summary_of(rows: Sequence[PoolSaving]) -> SavingSummary | None:
    """The median saving over the pools on which both entries meet the goal; None where there are none."""
    from scipy.stats import quantile_test

    found = [row.saving for row in rows if row.saving is not None]
    if not found:
        return None
    limits = quantile_test(found, p=0.5).confidence_interval(CONFIDENCE)
    # Of few values, no order statistic is far enough out: the interval is then all of them.
    low = min(found) if math.isnan(limits.low) else limits.low
    high = max(found) if math.isnan(limits.high) else limits.high
    return SavingSummary(
        pools=len(found),
        better=sum(saving > 0 for saving in found),
        worse=sum(saving < 0 for saving in found),
        median=median(found),
        low=float(low),
        high=float(high),
        most=max(found),
    )
