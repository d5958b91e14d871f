"""Pools, the bounds of their fleets, and the hunt, checked against every placement of a small pool."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards.pools import MS, pool

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.relaxations import rented_fleets
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.renting.device_pool import NOT_RENTED, DevicePool
from opmark.leaderboards.search.renting.fleet_bounds import FleetBounds
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt
from opmark.leaderboards.search.renting.halving import hunt_by_halving
from opmark.leaderboards.search.renting.pace import ClockPace
from opmark.leaderboards.simulator.simulate import simulate, simulate_many


def every_placement(problem):
    """The best cost over all placements without replicas."""
    able = [np.flatnonzero(row >= 0).tolist() for row in problem.arrays.run_ns]
    table = np.array(list(itertools.product(*able)), dtype=np.int64)
    return table, simulate_many(problem, table)


def test_fleets_are_all_counts_that_can_run_everything():
    whole = DevicePool.of(pool())
    assert whole.types == ("fast", "slow", "odd")
    assert whole.available == (2, 3, 1)
    fleets = list(whole.fleets())
    assert len(fleets) == 3 * 4 * 2 - 2  # nothing at all, and odd alone, cannot run b
    assert (0, 0, 1) not in fleets
    assert [sum(fleet) for fleet in fleets] == sorted(sum(fleet) for fleet in fleets)
    assert whole.singles() == [(1, 0, 0), (0, 1, 0)]


def test_a_fleet_too_small_for_the_weights_is_left_out():
    whole = DevicePool.of(pool(memory_bytes=1500))
    assert min(sum(fleet) for fleet in whole.fleets()) == 3  # 4,000 bytes of weights


def test_the_problem_of_a_fleet_costs_the_same_as_the_pool():
    whole = DevicePool.of(pool(price_per_hour=9.0))
    inner = whole.problem_of((1, 1, 0))
    assert [device.name for device in inner.cluster.devices] == ["fast-0", "slow-0", "storage"]
    assert inner.cluster.devices[-1].type == NOT_RENTED
    assert not inner.limits
    there = Placement(device=np.array([0, 0, 1, 0], dtype=np.int64))
    here = whole.placement_of(inner, there)
    assert whole.fleet_of(set(here.device.tolist())) == (1, 1, 0)
    assert simulate(inner, there).latency_ns == simulate(whole.problem, here).latency_ns


@pytest.mark.parametrize("objective", ["latency", "throughput"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_placement_beats_the_bound_of_its_fleet(objective, data):
    problem = pool(objective, transfer_ns=data.draw(st.sampled_from([0, 1000, MS])))
    whole = DevicePool.of(problem)
    least = FleetBounds(whole)
    able = [np.flatnonzero(row >= 0).tolist() for row in problem.arrays.run_ns]
    row = np.array([data.draw(st.sampled_from(one)) for one in able], dtype=np.int64)
    assert simulate_many(problem, row[None, :])[0] >= least.least_ns(whole.fleet_of(set(row.tolist())))


@pytest.mark.parametrize(
    "problem",
    [
        pool("cost", latency_ns=9 * MS),
        pool("cost", latency_ns=25 * MS),
        pool("latency", price_per_hour=4.0),
        pool("latency", price_per_hour=2.0),
        pool("cost", latency_ns=9 * MS, transfer_ns=2 * MS),
    ],
)
def test_the_hunt_finds_the_optimum_of_a_small_pool_and_bounds_stay_below(problem):
    _, costs = every_placement(problem)
    hunt = FleetHunt(problem, "test", 20.0)
    hunt_by_halving(hunt, list(hunt.pool.fleets()), ClockPace(hunt, seed=0))
    if costs.min() == INVALID_COST:
        with pytest.raises(PlacementError, match="limits"):
            hunt.solution()
        return
    assert hunt.incumbent.value is not None
    assert -int(-hunt.incumbent.value // 1) == costs.min()
    found = bounds(problem)
    assert found["rented_fleets"] == rented_fleets.RELAXATION.bound(problem, groups_of(problem))
    assert max(found.values()) <= costs.min()
    assert found["rented_fleets"] > 0.4 * costs.min()


def test_a_demand_is_met_with_the_cheapest_devices():
    # 24 ms of work on slow devices: three of them give a sample every 8 ms at best, for 3 an hour
    hunt = FleetHunt(pool("rent", period_ns=int(12.5 * MS)), "test", 20.0)
    hunt_by_halving(hunt, list(hunt.pool.fleets()), ClockPace(hunt, seed=0))
    best = hunt.best()
    assert best is not None
    assert best.fleet == (0, 2, 0)
    assert hunt.incumbent.value == 2 * 10**12
