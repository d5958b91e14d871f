"""Ideals of small graphs, and programs that run in slices."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.contracts.test_placers_stop import Clock
from tests.leaderboards.examples import graph, star

from opmark.leaderboards.search.cuts import ideals
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import FIRST_STEPS, MOST_STEPS, every_ideal, prefixes, run_in_slices


def test_the_ideals_of_two_chains() -> None:
    problem = graph(dict.fromkeys("abxy", 1), [("a", ["b"]), ("x", ["y"])], star())
    blocks = blocks_of(problem)
    assert every_ideal(blocks, at_most=100, deadline=time.monotonic() - 1) is None
    assert every_ideal(blocks, at_most=8, deadline=math.inf) is None
    ideals = every_ideal(blocks, at_most=100, deadline=math.inf)
    assert ideals is not None
    assert ideals.number == 9
    assert ideals.bits[0].tolist() == [0]
    assert ideals.bits[-1].tolist() == [15]
    assert ideals.difference(8, 0) == [0, 1, 2, 3]
    assert every_ideal(blocks, at_most=8, deadline=math.inf) is None
    # listed once for all problems with this graph
    again = blocks_of(replace(problem, name="again"))
    assert every_ideal(again, at_most=9, deadline=time.monotonic() - 1) is ideals
    for order in blocks.depth_first_orders:
        assert sorted(order) == [0, 1, 2, 3]
        assert prefixes(blocks, order).number == 5


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
