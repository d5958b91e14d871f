"""Failures of placers become one sentence."""

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.core.errors import SubmissionError, UnknownNameError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.placer import Placer


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
