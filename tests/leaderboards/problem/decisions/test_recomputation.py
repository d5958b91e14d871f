"""Recomputed units worked by hand: less memory, more time, and only when the backward pass comes."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import device
from tests.leaderboards.simulator.test_micro_batches import pipeline

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import row_of, solution_in
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace


def two_stages(micro_batches: int, memory_bytes: int = 2**30, mode: str = "stash") -> Problem:
    """Four layers (2 ns forward, 3 back, activations of 10 bytes, gradients of 100, weights of 1000) on two devices."""
    problem = pipeline(4, micro_batches, forward=2, backward=3, memory_mode=mode)
    devices = tuple(device(f"d{number}", memory_bytes=memory_bytes) for number in (0, 1))
    links = tuple(link for link in problem.cluster.links if {link.source, link.destination} == {"d0", "d1"})
    return replace(problem, cluster=replace(problem.cluster, devices=devices, links=links))


def answer(problem: Problem, *again: str, schedule: str = "") -> Evaluation:
    places = {unit.name: f"d{int(unit.name[1:]) // 2}" for unit in problem.units}
    return evaluate(problem, Solution(device=places, schedule=schedule, recompute=again or None))


def test_a_stage_keeps_what_it_was_handed_and_computes_again() -> None:
    problem = two_stages(4)
    plain = answer(problem, schedule="fill-drain")
    assert plain.cost == (4 + 1) * (4 + 6)
    # four micro-batches of two activations, or of three with the one that was handed over
    assert plain.schedule.peak_bytes.tolist() == [2200 + 4 * 20, 2200 + 4 * 30]
    again = answer(problem, "f0", "f1", "f2", "f3", schedule="fill-drain")
    assert again.cost == (4 + 1) * (4 + 4 + 6), "forward once more before each backward"
    # four micro-batches of what crosses the border, and room for the activations of one
    assert again.schedule.peak_bytes.tolist() == [2200 + 4 * 10 + 20] * 2


def test_in_one_pass_the_second_run_waits_for_the_gradients() -> None:
    problem = two_stages(0, mode="liveness")
    found = answer(problem, "f0", "f1")
    assert found.cost == 4 * (2 + 3) + 4
    posed, placement, schedule = found.shown(problem)
    start = dict(zip((unit.name for unit in posed.units), schedule.unit_start_ns.tolist(), strict=True))
    assert placement.device.tolist()[-2:] == [0, 0]
    assert start["f0/again"] == 8 + 6, "after both backward units of the second stage"
    assert start["b1"] == 14 + 4


def test_answers_and_traces_keep_what_is_recomputed() -> None:
    problem = two_stages(4)
    found = answer(problem, "f0", "f1")
    assert found.decisions is not None
    assert solution_in(row_of(found.decisions, problem), problem) == replace(found.decisions, problem="line")
    assert check_trace(problem, chrome_trace(problem, found)) == found.cost


def test_only_forward_units_run_again() -> None:
    problem = two_stages(4)
    with pytest.raises(PlacementError, match="recompute names 'b0', which is no forward unit"):
        answer(problem, "b0")
    solution = Solution(device={}, recompute=("f0",), priority={})
    with pytest.raises(PlacementError, match="takes the default priorities and no order"):
        evaluate(problem, solution)
