"""Draws of prediction errors: repeatable, and shared by units whose errors are shared."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.leaderboards.examples import graph, pair
from tests.leaderboards.simulator.test_replicas import everywhere, step

from opmark.leaderboards.making.prediction_error import weighted_interval
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.scoring.robustness import (
    Robustness,
    drawn_factors,
    drawn_problem,
    robustness,
    robustness_of_all,
)
from opmark.leaderboards.simulator.simulate import simulate


def uncertain(count: int = 40):
    names = [f"u{number}" for number in range(count)]
    problem = graph(dict.fromkeys(names, 1_000_000), [], pair())
    units = tuple(
        replace(unit, interval={"x": (0.5, 2.0)}, kind="conv" if index % 2 else "linear", shape_group=str(index // 10))
        for index, unit in enumerate(problem.units)
    )
    return replace(problem, units=units)


def test_the_interval_holds_its_share() -> None:
    factors = drawn_factors(uncertain(), draws=4000, seed=1)
    inside = ((factors >= 0.5) & (factors <= 2.0)).mean()
    assert inside == pytest.approx(0.9, abs=0.02)
    assert np.median(factors) == pytest.approx(1.0, abs=0.05)


def test_errors_are_shared_by_kind_and_shape_group() -> None:
    logs = np.log(drawn_factors(uncertain(), draws=2000, seed=2)[:, :, 0])
    together = np.corrcoef(logs.T)
    assert together[0, 2] == pytest.approx(1.0), "same kind, same group"
    assert together[0, 12] == pytest.approx(0.5, abs=0.06), "same kind, another group"
    assert together[0, 1] == pytest.approx(0.0, abs=0.06), "another kind"


def test_a_seed_gives_the_same_costs() -> None:
    problem = uncertain(6)
    placement = Placement(device=np.array([0, 1, 0, 1, 0, 1]))
    first = robustness(problem, placement, seed=3)
    assert len(first.costs) == 100
    assert robustness(problem, placement, seed=3) == first
    assert robustness(problem, placement, seed=4) != first
    assert first.median < first.p95
    sure = replace(problem, units=tuple(replace(unit, interval={}) for unit in problem.units))
    assert set(robustness(sure, placement).costs) == {3_000_000}


def test_priorities_are_those_that_were_planned() -> None:
    problem = graph({"A": 10_000, "B": 9_000, "C": 10_000, "D": 1}, [("A", ["C"]), ("B", ["D"])], pair(3))
    units = tuple(replace(unit, interval={"x": (0.5, 2.0)}, kind=unit.name) for unit in problem.units)
    problem = replace(problem, units=units)
    placement = placement_of(problem, Solution(device={"A": "d0", "B": "d0", "C": "d1", "D": "d1"}))
    drawn = robustness(problem, placement, draws=30)
    fixed = replace(placement, priority=problem.arrays.default_priority)
    assert robustness(problem, fixed, draws=30) == drawn


def test_replicas_are_drawn_with_their_parts() -> None:
    problem = step()
    units = tuple(replace(unit, interval={"x": (0.8, 1.25)}, kind=unit.name) for unit in problem.units)
    placement = placement_of(problem, everywhere(2))
    costs = robustness(replace(problem, units=units), placement, draws=20).costs
    assert len(set(costs)) > 5
    assert min(costs) < 187 < max(costs)


def test_loads_are_drawn_as_they_are_simulated() -> None:
    problem = step()
    units = tuple(replace(unit, interval={"x": (0.8, 1.25)}, kind=unit.name) for unit in problem.units)
    problem = replace(problem, units=units, objective="throughput")
    placement = placement_of(problem, everywhere(2))
    assert placement.replicas
    costs = robustness(problem, placement, draws=20).costs
    drawn = [drawn_problem(problem, row) for row in drawn_factors(problem, draws=20)]
    assert costs == tuple(simulate(one, placement).cost_ns for one in drawn)
    assert len(set(costs)) > 5


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "throughput"},
        {"micro_batches": 3},
        {"micro_batches": 3, "memory_mode": "stash"},
        {"micro_batches": 3, "schedule": "fill-drain"},
    ],
)
def test_draws_cost_what_a_simulation_of_the_drawn_problem_says(changes: dict[str, Any]) -> None:
    problem = step()
    units = tuple(replace(unit, interval={"x": (0.5, 2.0)}, kind=unit.name) for unit in problem.units)
    schedule = changes.pop("schedule", "")
    problem = replace(problem, units=units, **changes)
    half = np.arange(len(units), dtype=np.int64) % problem.arrays.devices
    rows = [np.zeros_like(half), half, half[::-1].copy()]
    ranks = problem.arrays.default_priority
    placements = [Placement(device=row, priority=ranks, schedule=schedule) for row in rows]
    factors = drawn_factors(problem, draws=10)
    drawn = [drawn_problem(problem, row) for row in factors]
    found = robustness_of_all(problem, placements, factors=factors)
    assert [one.costs for one in found] == [
        tuple(simulate(one, placement).cost_ns for one in drawn) for placement in placements
    ]
    assert len(set(found)) > 1


def test_several_placements_see_the_same_draws() -> None:
    problem = step()
    units = tuple(replace(unit, interval={"x": (0.8, 1.25)}, kind=unit.name) for unit in problem.units)
    problem = replace(problem, units=units)
    alone = Placement(device=np.zeros(len(units), dtype=np.int64))
    both = [placement_of(problem, everywhere(2)), alone, replace(alone, priority=np.arange(len(units)))]
    factors = drawn_factors(problem, draws=20)
    found = robustness_of_all(problem, both, factors=factors)
    assert found == tuple(robustness(problem, placement, draws=20) for placement in both)
    assert found[0] != found[1]


def test_quantiles() -> None:
    found = Robustness(costs=tuple(range(1, 101)))
    assert (found.median, found.p95) == (50, 95)
    assert Robustness(costs=(7,)).p95 == 7


def test_a_sum_is_as_uncertain_as_its_parts() -> None:
    assert weighted_interval([(10.0, (0.5, 2.0)), (0.0, (0.1, 9.0))]) == (0.5, 2.0)
    low, high = weighted_interval([(5.0, (0.5, 2.0)), (5.0, (1.0, 1.0))])
    assert (low, high) == pytest.approx((0.5**0.5, 2**0.5), abs=1e-6)
    assert weighted_interval([]) == (1.0, 1.0)
