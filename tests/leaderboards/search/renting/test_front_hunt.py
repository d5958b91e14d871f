"""The hunt for a front, checked against every placement of a small pool."""

from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.pools import MS, pool
from tests.leaderboards.search.renting.test_fleet_hunt import every_placement

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.renting.fleet_hunt import FleetFigures, FleetHunt, front_fleets
from opmark.leaderboards.search.renting.front_hunt import hunt_front
from opmark.leaderboards.search.renting.front_incumbent import FrontIncumbent
from opmark.leaderboards.search.renting.pace import ClockPace
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.fronts import mean_time_ns, point_of

REFERENCE = {"latency_ns": 30 * MS, "price_per_hour": 8.0}


def least_cost(problem):
    """The cost of the front of all placements without replicas."""
    free = replace(problem, objective="latency", limits=GoalLimits())
    table, latencies = every_placement(free)
    points = set()
    for row, latency in zip(table, latencies.tolist(), strict=True):
        points.add(point_of(problem, Placement(device=row), latency))
    kept = [one for one in points if one.price_per_hour <= 8 and one.time_ns <= 30 * MS]
    return mean_time_ns(problem.limits, kept)


@pytest.mark.parametrize("transfer_ns", [1000, 2 * MS])
def test_the_front_is_that_of_every_placement_and_the_bound_is_below(transfer_ns):
    problem = pool("hypervolume", transfer_ns=transfer_ns, **REFERENCE)
    hunt = FleetHunt(problem, "test", 20.0)
    hunt_front(hunt, list(hunt.pool.fleets()), ClockPace(hunt, seed=0))
    found = evaluate(problem, hunt.solution())
    assert found.schedule.value == hunt.incumbent.value == least_cost(problem)
    assert len(found.front) >= 3
    assert 0.4 * found.cost < max(bounds(problem).values()) <= found.cost


def test_placers_answer_with_fronts_and_none_beats_the_search():
    problem = pool("hypervolume", **REFERENCE)
    best = attempt(problem, "opmark", budget_s=2.0, seed=1)
    assert best.evaluation.schedule.value == least_cost(problem)
    for name in ("equal-types", "sailor-stages", "marginal-gain", "melange", "ceer"):
        found = attempt(problem, name, budget_s=2.0, seed=1)
        assert len(found.evaluation.front) >= 2, name
        assert found.evaluation.cost >= best.evaluation.cost
    for name in ("cheapest-single", "fastest-single", "random-fleet"):
        assert len(attempt(problem, name, budget_s=2.0, seed=1).evaluation.front) == 1, name


def test_equal_types_alone_make_a_worse_front_where_a_branch_is_cheap_elsewhere():
    problem = pool("hypervolume", transfer_ns=0, **REFERENCE)
    mixed, equal = (attempt(problem, name, budget_s=2.0).evaluation.cost for name in ("opmark", "equal-types"))
    assert mixed < equal


def test_an_incumbent_keeps_what_no_other_placement_matches():
    problem = pool("hypervolume", **REFERENCE)
    front = FrontIncumbent(problem, "test", 5.0)
    slow, fast, two_slow = ([2, 2, 2, 2], [0, 0, 0, 0], [2, 2, 3, 2])
    for row, better in ((slow, True), (fast, True), (fast, False), (two_slow, True), ([3, 3, 3, 3], False)):
        assert front.consider(Placement(device=np.array(row, dtype=np.int64))) is better
    assert [float(one.price_per_hour) for one in front.front] == [1.0, 2.0, 3.0]
    assert len(front.solution().points) == 3
    with pytest.raises(PlacementError, match="nothing that was tried fits"):
        FrontIncumbent(problem, "test", 5.0).solution()


def test_the_front_of_figures_has_the_fleets_that_no_other_one_matches():
    def figures(fleet, price, time_ns):
        return FleetFigures(fleet=fleet, price_per_hour=price, time_ns=time_ns)

    rows = [
        figures((1, 0), 3.0, 9.0),
        figures((0, 1), 1.0, 20.0),
        figures((0, 2), 2.0, 20.0),
        figures((1, 1), 4.0, 5.0),
    ]
    assert front_fleets(rows) == [(0, 1), (1, 0), (1, 1)]
