"""CP-SAT proves known optima, and reports a missing solver."""

import sys
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import heft_canonical, peft_canonical, pipeline

from opmark.core.errors import MissingExtraError, SubmissionError
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt


def test_cp_sat_proves_the_canonical_optima() -> None:
    pytest.importorskip("ortools", reason="the extra `solvers` is not installed")
    free = replace(heft_canonical(), profile="contention_free")
    assert attempt(free, "cp-sat", budget_s=60).evaluation.cost == 73
    assert attempt(peft_canonical(), "cp-sat", budget_s=60).evaluation.cost == 113
    assert attempt(pipeline([3, 3, 2, 2, 2], 2), "cp-sat", budget_s=10).evaluation.cost == 6


@settings(max_examples=25, deadline=None)
@given(problem=examples.problems(max_units=6))
def test_opmark_is_as_good_as_cp_sat(problem: Problem) -> None:
    pytest.importorskip("ortools", reason="the extra `solvers` is not installed")
    try:
        exact = attempt(problem, "cp-sat", budget_s=10)
    except SubmissionError:
        assume(False)
    assert attempt(problem, "opmark", budget_s=10).evaluation.cost <= exact.evaluation.cost * 1.01


def test_cp_sat_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtraError, match="cp-sat needs OR-tools"):
        attempt(heft_canonical(), "cp-sat", budget_s=1)
