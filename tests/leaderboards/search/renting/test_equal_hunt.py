"""The counted hunt among equal devices: the same answer at any speed, and a part of every longer hunt."""

from dataclasses import replace

import pytest
from tests.contracts.test_placers import branchy
from tests.leaderboards.pools import MS, PRICES, pool

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.search.renting.equal_hunt import counted_steps, explore, hunt_equal
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt
from opmark.leaderboards.search.renting.pace import FEWEST_STEPS, ClockPace, CountedPace

GOALS = {
    "cost": {"latency_ns": 25 * MS},
    "latency": {"price_per_hour": 6.0},
    "rent": {"period_ns": 13 * MS},
    "throughput": {"price_per_hour": 5.0},
    "hypervolume": {"latency_ns": 30 * MS, "price_per_hour": 8.0},
}


def wide_pool(objective):
    """A graph of many branches, so that a search has something to find."""
    problem = branchy(blocks=8)
    kinds = problem.cluster.types
    devices = tuple(
        Device(name=f"{kind}-{number}", type=kind, memory_bytes=2**40, price_per_hour=price)
        for kind, price in zip(kinds, PRICES.values(), strict=False)
        for number in range(3)
    )
    links = tuple(
        Link(source=a.name, destination=b.name, latency_ns=10, bandwidth_bytes_per_s=1e12)
        for a in devices
        for b in devices
        if a is not b
    )
    cluster = Cluster(name="wide", devices=devices, links=links, host=devices[0].name)
    limits = GoalLimits(price_per_hour=7.0)
    return replace(problem, cluster=cluster, objective=objective, limits=limits, reference=None)


def equal_answer(problem, clock_s, steps_for_s=1.0, seed=3):
    hunt = FleetHunt(problem, "test", clock_s)
    hunt_equal(hunt, budget_s=steps_for_s, seed=seed)
    return hunt.incumbent.value, hunt.found


@pytest.mark.parametrize("objective", GOALS)
def test_the_clock_does_not_change_a_counted_hunt(objective):
    problem = pool(objective, **GOALS[objective])
    value, found = equal_answer(problem, 60.0)
    assert value is not None
    assert equal_answer(problem, 1000.0) == (value, found)
    assert all(sum(count > 0 for count in fleet) == 1 for fleet in found)


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_a_search_among_many_placements_is_the_same_at_any_speed(objective):
    problem = wide_pool(objective)
    assert equal_answer(problem, 60.0) == equal_answer(problem, 1000.0)


@pytest.mark.parametrize("objective", GOALS)
def test_what_follows_the_counted_hunt_only_improves_on_it(objective):
    problem = pool(objective, **GOALS[objective])
    equal, _ = equal_answer(problem, 60.0)
    hunt = FleetHunt(problem, "test", 5.0)
    hunt_equal(hunt, budget_s=1.0, seed=3)
    assert hunt.incumbent.value == equal
    explore(hunt, list(hunt.pool.fleets()), ClockPace(hunt, seed=3))
    assert hunt.incumbent.value <= equal


def test_steps_grow_with_the_budget_and_shrink_with_the_graph():
    problem = wide_pool("latency")
    assert counted_steps(problem, 4.0) == pytest.approx(2 * counted_steps(problem, 2.0), abs=1)
    assert counted_steps(pool(), 2.0) > counted_steps(problem, 2.0)


def test_a_counted_pace_spends_its_steps_and_no_time():
    hunt = FleetHunt(pool("latency", price_per_hour=6.0), "test", 60.0)
    pace = CountedPace(hunt, 10 * FEWEST_STEPS, seed=0)
    assert not pace.over(0.5)
    pace.search((2, 0, 0), 0.5)
    assert not pace.over(1.0)
    pace.search((2, 0, 0), 1.0)
    assert pace.over(1.0)
    assert not pace.over(0.99)
    assert (2, 0, 0) in hunt.searched
