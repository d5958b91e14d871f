"""Limits of fleets: no placement beats them, and they tell fast types from slow ones."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.provisioning.offers import MS, diamond

from opmark.leaderboards.problem.placement import Placement, solution_of
from opmark.leaderboards.provisioning.answer import answer_of
from opmark.leaderboards.provisioning.fleet import Fleet, all_fleets
from opmark.leaderboards.provisioning.fleet_limits import FleetLimits


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_no_placement_beats_the_limit_of_its_fleet(objective):
    job = diamond()
    limits = FleetLimits(job, objective)
    for fleet in all_fleets({"fast": 2, "slow": 2}, 3):
        problem = job.problem(fleet, objective=objective)
        bound = limits.best_figures(fleet)
        for row in itertools.product(range(fleet.size), repeat=len(problem.units)):
            placement = Placement(device=np.array(row, dtype=np.int64))
            answer = answer_of(job, fleet, solution_of(problem, placement), objective=objective)
            if objective == "latency":
                assert bound.latency_ns <= answer.latency_ns
            assert bound.samples_per_second >= answer.samples_per_second


def test_a_slow_device_counts_as_the_share_of_a_fast_one_that_it_is():
    # 12 ms of work on fast devices: with a slow one, half as fast, at least 12 / 1.5 = 8 ms, not 12 / 2
    bound = FleetLimits(diamond(), "throughput").best_figures(Fleet.of({"fast": 1, "slow": 1}))
    assert 1e9 / bound.samples_per_second == pytest.approx(8 * MS)
    assert bound.price_per_hour == 4.0


def test_a_fleet_that_cannot_run_a_unit_has_no_figures():
    job = diamond()
    units = [replace(unit, exec_ns={"fast": MS}) if unit.name == "b" else unit for unit in job.whole.units]
    limits = FleetLimits(replace(job, whole=replace(job.whole, units=tuple(units))), "latency")
    assert math.isinf(limits.best_figures(Fleet.of({"slow": 2})).latency_ns)
    assert math.isfinite(limits.best_figures(Fleet.of({"fast": 1, "slow": 1})).latency_ns)
