"""Placers in processes of their own: hard time limits, and failures that are one sentence."""

import subprocess
import textwrap
from pathlib import Path

import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical

from opmark.core.errors import SubmissionError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring import placer_process
from opmark.leaderboards.scoring.attempt import attempt, budget_by_size_s, hard_end_s
from opmark.leaderboards.scoring.placer_process import PlacerProcess
from opmark.leaderboards.scoring.placer_worker import compile_simulator
from opmark.leaderboards.search import anytime

# The source of faulty placers, which are not part of the package.
STRANGE = """
import time, os
from opmark.leaderboards.search import anytime
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.search.placer import Placer

class Strange(Placer):
    summary = "strange"
    def place(self, problem, *, budget_s, seed):
        on = lambda name: Solution(device={unit.name: name for unit in problem.units})
        {body}

PLACER = Strange()
"""


@pytest.fixture(autouse=True)
def real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here starts are tested."""
    monkeypatch.setattr(placer_process, "subprocess", subprocess)


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write placers that only processes started from now on can see."""
    (tmp_path / "sitecustomize.py").write_text(
        f"import opmark.leaderboards.placers as room\nroom.__path__.append({str(tmp_path / 'more')!r})\n"
    )
    (tmp_path / "more").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")

    def write(body: str, name: str = "strange") -> None:
        indented = textwrap.indent(textwrap.dedent(body).strip(), " " * 8).lstrip()
        (tmp_path / "more" / f"{name}.py").write_text(STRANGE.replace("{body}", indented))

    return write


def test_a_placer_that_never_comes_back_is_ended_and_its_last_offer_counts(strange) -> None:
    strange("anytime.offer(on('P1')); anytime.offer(on('P2')); anytime.offer(on('nowhere'))\nwhile True: pass")
    with PlacerProcess() as process:
        found = process.attempt(heft_canonical(), "strange", budget_s=0.1)
        assert set(found.solution.device.values()) == {"P2"}
        assert found.planning_s >= hard_end_s(0.1)
        assert found.answered_s is not None
        assert found.answered_s < found.planning_s
        assert process.attempt(heft_canonical(), "heft", budget_s=5).evaluation.cost == 93, "a new process"


def test_what_goes_wrong_is_one_sentence(strange) -> None:
    strange("raise ValueError('boom')", "raising")
    strange("return on('nowhere')", "lost")
    strange("os._exit(9)", "dying")
    strange("while True: pass", "endless")
    with PlacerProcess() as process:
        for name, sentence in (
            ("raising", "placer 'raising' raised ValueError: boom"),
            ("lost", "placer 'lost' is invalid: unit 'T1' is placed on 'nowhere'"),
            ("dying", r"placer 'dying' took its process down \(code 9\)"),
            ("endless", r"was ended 1\.\d+ s after it got the problem, for a budget of 0.1 s"),
        ):
            with pytest.raises(SubmissionError, match=sentence):
                process.attempt(heft_canonical(), name, budget_s=0.1)


def test_a_process_answers_like_a_call() -> None:
    with PlacerProcess() as process:
        for problem in (heft_canonical(), peft_canonical(), peft_canonical()):
            inside = attempt(problem, "local-search", budget_s=200, seed=3)
            outside = process.attempt(problem, "local-search", budget_s=200, seed=3)
            assert outside.solution == inside.solution
            assert outside.evaluation.cost == inside.evaluation.cost


def test_offers_reach_who_listens_and_nobody_else() -> None:
    heard: list[Solution] = []
    anytime.offer(Solution(device={"a": "b"}))
    with anytime.listening(heard.append):
        anytime.offer(Solution(device={"c": "d"}))
    anytime.offer(Solution(device={"e": "f"}))
    assert heard == [Solution(device={"c": "d"})]


def test_budgets_follow_the_size() -> None:
    assert [budget_by_size_s(units) for units in (10, 200, 201, 2000, 2001)] == [2, 2, 10, 10, 60]
    assert hard_end_s(10) == 12
    compile_simulator(heft_canonical())
