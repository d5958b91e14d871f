"""CPOP on its own example."""

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.leaderboards.placers.cpop import cpop_schedule
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.simulator.simulate import simulate


def test_the_makespan_is_that_of_the_paper() -> None:
    schedule, _ = cpop_schedule(heft_canonical(), contention=False)
    assert max(schedule.end_ns) == 86
    assert simulate(heft_canonical(), schedule.placement(), profile_named("contention_free")).cost_ns == 86


def test_the_critical_path_shares_the_device_that_runs_it_fastest() -> None:
    schedule, priority = cpop_schedule(heft_canonical(), contention=False)
    path = [0, 1, 8, 9]
    assert max(priority) == pytest.approx(min(priority[path]), abs=1), (
        "every task of the path has its length as priority"
    )
    assert schedule.device[path].tolist() == [1] * 4, "P2 runs it in 54, P3 in 63, P1 in 66"
