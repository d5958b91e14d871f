import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.provisioning.offers import MS, diamond, short_branch

from opmark.leaderboards.problem.placement import Placement, solution_of
from opmark.leaderboards.provisioning.answer import answer_of
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.fleet import Fleet, all_fleets
from opmark.leaderboards.provisioning.goal import Goal

GOALS = [
    Goal(),
    Goal(latency_at_most_ns=9.0 * MS),
    Goal(latency_at_most_ns=14.5 * MS),
    Goal(price_per_hour_at_most=4.5),
    Goal(samples_per_second=120),
]


def every_answer(asked, goal, devices):
    """All fleets with all of their placements, replicas aside."""
    objective = "throughput" if goal.in_a_pipeline else "latency"
    available = {kind: offer.available for kind, offer in asked.catalogue.offers.items()}
    for fleet in all_fleets(available, devices):
        problem = asked.problem(fleet, objective=objective)
        for row in itertools.product(range(fleet.size), repeat=len(problem.units)):
            placement = Placement(device=np.array(row, dtype=np.int64))
            yield answer_of(asked, fleet, solution_of(problem, placement), objective=objective)


@pytest.mark.parametrize("goal", GOALS)
def test_the_answer_is_at_least_as_good_as_every_fleet_with_every_placement(goal):
    asked = diamond()
    exploration = Exploration(asked, goal, devices_at_most=2)
    exploration.run(20.0)
    best = min(every_answer(asked, goal, 2), key=goal.rank)
    found = exploration.best()
    assert goal.rank(found) <= goal.rank(best)
    equal = min((one for one in every_answer(asked, goal, 2) if one.fleet.equal), key=goal.rank)
    assert goal.rank(exploration.best(lambda one: one.fleet.equal)) <= goal.rank(equal)
    assert goal.rank(found) <= goal.rank(exploration.best(lambda one: one.fleet.equal))


def test_unequal_types_win_where_one_branch_is_short():
    exploration = Exploration(short_branch(), Goal(latency_at_most_ns=12.0 * MS), devices_at_most=3)
    exploration.run(20.0)
    assert exploration.best().fleet == Fleet.of({"fast": 1, "slow": 1})


def test_no_point_of_the_front_is_dearer_and_slower_than_another():
    exploration = Exploration(diamond(), Goal(), devices_at_most=3)
    exploration.run(5.0)
    front = exploration.front()
    prices = [one.price_per_hour for one in front]
    assert prices == sorted(prices)
    assert all(a.latency_ns > b.latency_ns for a, b in itertools.pairwise(front))


def test_idle_devices_are_not_rented():
    asked = diamond()
    fleet = Fleet.of({"fast": 1, "slow": 2})
    problem = asked.problem(fleet, objective="latency")
    # Only the second slow device has units.
    placement = Placement(device=np.full(len(problem.units), 2, dtype=np.int64))
    answer = answer_of(asked, fleet, solution_of(problem, placement), objective="latency")
    assert answer.fleet == Fleet.of({"slow": 1})
    assert (answer.price_per_hour, answer.latency_ns) == (1.0, 24.0 * MS)


def test_stopping_at_once_still_gives_the_single_devices():
    exploration = Exploration(diamond(), Goal(), devices_at_most=3)
    exploration.run(20.0, stop=lambda: True)
    assert {fleet.size for fleet in exploration.answers} == {1}
    assert exploration.best() is not None


def test_memory_that_one_device_lacks_forces_several():
    asked = diamond()
    units = tuple(replace(unit, weights=(unit.name,)) for unit in asked.whole.units)
    # Two units fill a device of 1 GiB.
    whole = replace(asked.whole, units=units, weights=dict.fromkeys("abcd", 2**29 - 1))
    asked = replace(asked, whole=whole)
    exploration = Exploration(asked, Goal(), devices_at_most=3)
    exploration.run(10.0)
    assert exploration.best().fleet.size == 2
    assert all(fleet.size > 1 for fleet in exploration.answers)


def test_single_devices_come_first_then_equal_types_then_the_most_promising_others():
    exploration = Exploration(diamond(), Goal(samples_per_second=130), devices_at_most=3)
    asked = list(exploration.fleets())
    sizes = [fleet.size for fleet in asked if fleet.equal]
    assert [fleet.equal for fleet in asked] == [True] * len(sizes) + [False] * (len(asked) - len(sizes))
    assert sizes[:2] == [1, 1]
    assert len(set(asked)) == len(asked) == 9
    # One fast and one slow device give 125 samples per second at best; with a second slow one, 166 for the least money.
    assert asked[len(sizes)] == Fleet.of({"fast": 1, "slow": 2})


def test_a_placement_that_leaves_devices_idle_keeps_its_order():
    asked = diamond()
    fleet = Fleet.of({"fast": 1, "slow": 2})
    problem = asked.problem(fleet, objective="latency")
    # c runs before b, on the second slow device
    placement = Placement(device=np.full(4, 2, dtype=np.int64), order={2: [0, 2, 1, 3]})
    answer = answer_of(asked, fleet, solution_of(problem, placement), objective="latency")
    assert answer.fleet == Fleet.of({"slow": 1})
    assert answer.placement.order == {0: [0, 2, 1, 3]}
