"""PEFT on its own example."""

from tests.leaderboards.examples import peft_canonical

from opmark.leaderboards.placers.peft import peft_schedule
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.simulator.simulate import simulate


def test_the_makespan_is_that_of_the_paper() -> None:
    schedule, _ = peft_schedule(peft_canonical(), contention=False)
    assert max(schedule.end_ns) == 122
    assert simulate(peft_canonical(), schedule.placement(), profile_named("contention_free")).cost_ns == 122


def test_the_table_is_that_of_the_paper() -> None:
    _, table = peft_schedule(peft_canonical(), contention=False)
    assert table[0].tolist() == [64, 68, 86]
    assert table[9].tolist() == [0, 0, 0], "nothing follows the exit"
