"""The published algorithms on their own worked examples; local search; what a bad placer's failure looks like."""

import numpy as np
import pytest
from tests.leaderboards.examples import graph, heft_canonical, pair, peft_canonical, star

from opmark.core.errors import SubmissionError, UnknownNameError
from opmark.leaderboards.placers.cpop import cpop_schedule
from opmark.leaderboards.placers.heft import heft_schedule
from opmark.leaderboards.placers.peft import peft_schedule
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.placer import Placer
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


@pytest.mark.parametrize(
    ("schedule", "problem", "expected"),
    [
        (heft_schedule, peft_canonical(), 133),
        (cpop_schedule, heft_canonical(), 86),
        (peft_schedule, peft_canonical(), 122),
    ],
)
def test_canonical_makespans(schedule, problem: Problem, expected: int) -> None:
    built, _ = schedule(problem, contention=False)
    assert max(built.end_ns) == expected
    assert simulate(problem, built.placement(), FREE).cost_ns == expected


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


def test_local_search_beats_its_starts() -> None:
    costs = {name: attempt(heft_canonical(), name, budget_s=20).evaluation.cost for name in ("heft", "local-search")}
    assert costs["local-search"] < costs["heft"]


def test_local_search_returns_its_best_when_time_is_up() -> None:
    assert attempt(peft_canonical(), "local-search", budget_s=0).evaluation.cost <= 140


class Answers(Placer):
    summary = "says what it was told to say"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (ValueError("boom"), "placer 'mine' raised ValueError: boom"),
        (KeyError(), "placer 'mine' raised KeyError"),
        (None, "placer 'mine' returned a NoneType, not a Solution"),
        ({"T1": "P1"}, "placer 'mine' returned a dict, not a Solution"),
        (Solution(device={"T1": "P1"}), "placer 'mine' is invalid: 9 of 10 units have no device"),
        (Solution(device={f"T{i}": "GPU" for i in range(1, 11)}), "'GPU', which is no device"),
        (Solution(device={f"T{i}": float("nan") for i in range(1, 11)}), "is placed on nan"),
    ],
)
def test_whatever_a_placer_does_wrong_is_one_sentence(answer: object, sentence: str) -> None:
    with pytest.raises(SubmissionError, match=sentence):
        attempt(heft_canonical(), "mine", budget_s=1, placer=Answers(answer))


def test_an_unknown_placer_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as caught:
        attempt(heft_canonical(), "hefd", budget_s=1)
    assert caught.value.hint == "did you mean 'heft'?"


def test_nothing_to_decide_is_fine() -> None:
    alone = graph({"a": 5, "b": 5}, [("a", ["b"])], star(devices=1))
    assert attempt(alone, "local-search", budget_s=1).evaluation.cost == 10
