"""HEFT on its own example, start for start, and with queues on links."""

import numpy as np
from tests.leaderboards.examples import graph, heft_canonical, pair, peft_canonical

from opmark.leaderboards.placers.heft import heft_schedule
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.simulator.simulate import simulate

FREE = profile_named("contention_free")


def test_heft_start_for_start() -> None:
    schedule, rank = heft_schedule(heft_canonical(), contention=False)
    assert schedule.start_ns.tolist() == [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]
    assert schedule.end_ns.tolist() == [9, 40, 28, 26, 38, 42, 49, 62, 68, 80]
    assert schedule.device.tolist() == [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]
    # the paper prints 108, 77, 80, 80, 69, 63.3, 42.7, 35.7, 44.3, 14.7; means are whole ns here
    assert np.abs(rank - [108, 77, 80, 80, 69, 63, 43, 36, 44, 15]).max() <= 1
    assert simulate(heft_canonical(), schedule.placement(rank), FREE).cost_ns == 80


def test_heft_on_the_example_of_peft() -> None:
    schedule, _ = heft_schedule(peft_canonical(), contention=False)
    assert max(schedule.end_ns) == 133
    assert simulate(peft_canonical(), schedule.placement(), FREE).cost_ns == 133


def test_the_estimate_knows_that_links_queue() -> None:
    # three parents on d0 feed three children; with queueing links it is better to stay
    problem = graph(
        {"a": 1, "b": 1, "c": 1, "x": 30, "y": 30, "z": 30}, [("a", ["x"]), ("b", ["y"]), ("c", ["z"])], pair(25)
    )
    free, _ = heft_schedule(problem, contention=False)
    aware, rank = heft_schedule(problem)
    real = [simulate(problem, schedule.placement(rank)).cost_ns for schedule in (free, aware)]
    assert real[1] <= real[0]
    assert real[1] == max(aware.end_ns), "the estimate is what the simulator says"
