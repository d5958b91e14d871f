"""Programs that run in slices, and placers that stop when the clock says so."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.placers import generated

from opmark.leaderboards.problem.problem import smallest_problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.cuts import ideals
from opmark.leaderboards.search.cuts.ideals import FIRST_STEPS, MOST_STEPS, run_in_slices
from opmark.leaderboards.search.placer import PLACERS


class Clock:
    """Stands still for so many looks, and is far beyond every budget then."""

    def __init__(self, looks: int) -> None:
        self.looks, self.over_at = 0, looks

    def __call__(self) -> float:
        self.looks += 1
        return 0.0 if self.looks <= self.over_at else 1e9


class Program:
    """Reaches one more ideal per call; `step_s` is the time of a step."""

    def __init__(self, now: list[float] | None = None, step_s: float = 0.0) -> None:
        self.position = np.zeros(4, dtype=np.int64)
        self.asked: list[int] = []
        self.now, self.step_s = now, step_s

    def __call__(self, steps: int) -> None:
        self.asked.append(steps)
        self.position[0] += 1
        if self.now is not None:
            self.now[0] += steps * self.step_s


def test_a_program_runs_until_it_is_done_or_late(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program()
    assert run_in_slices(program, program.position, 5, math.inf)
    assert len(program.asked) == 5
    late = Program()
    assert not run_in_slices(late, late.position, 5, -math.inf)
    assert not late.asked
    monkeypatch.setattr(ideals.time, "monotonic", Clock(3))
    stopped = Program()
    assert not run_in_slices(stopped, stopped.position, 50, 1.0)
    assert len(stopped.asked) == 3, "one slice more when time is up"
    assert run_in_slices(stopped, stopped.position, 4, math.inf)


def test_a_slice_is_as_long_as_its_steps_took(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    program = Program(now, step_s=1e-6)
    monkeypatch.setattr(ideals.time, "monotonic", lambda: now[0])
    run_in_slices(program, program.position, 8, math.inf)
    assert program.asked[:2] == [FIRST_STEPS, 4 * FIRST_STEPS]
    assert program.asked[-1] == pytest.approx(20_000, abs=2)
    monkeypatch.setattr(ideals.time, "monotonic", lambda: 0.0)
    quick = Program()
    run_in_slices(quick, quick.position, 40, math.inf)
    assert quick.asked[-1] == MOST_STEPS


@pytest.mark.parametrize("name", PLACERS.names())
@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("looks", [2, 40])
def test_a_placer_stops_when_the_clock_says_so(
    name: str, objective: str, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "cp-sat":
        pytest.importorskip("ortools", reason="the extra `solvers` is not installed")
    problem = replace(generated(1, units=90, width=5, devices=4), objective=objective)
    PLACERS.load(name).prepare()
    clock = Clock(looks)
    monkeypatch.setattr(time, "monotonic", clock)
    found = attempt(problem, name, budget_s=0.5)
    assert found.evaluation.cost > 0
    assert clock.looks <= looks + 60, "it goes on though its time is over"


@pytest.mark.parametrize(("name", "cost"), [("opmark", 2), ("heft", 2), ("pipedream", 3)])
def test_the_smallest_problem_is_solved_at_once(name: str, cost: int) -> None:
    # a pipeline of two stages pays for the transfer of 1 ns
    assert attempt(smallest_problem(), name, budget_s=5).evaluation.cost == cost
