"""Every placer stops when the clock says so, and solves the smallest problem."""

import time
from dataclasses import replace

import pytest
from benchmarks.placers import generated

from opmark.leaderboards.problem.problem import smallest_problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.placer import PLACERS

# Placers that need a package of the extra `solvers`.
NEEDS = {"cp-sat": "ortools", "pesto": "ortools", "exact-fleets": "ortools", "heterbo": "sklearn"}


class Clock:
    """Stands still for so many looks, and is far beyond every budget then."""

    def __init__(self, looks: int) -> None:
        self.looks, self.over_at = 0, looks

    def __call__(self) -> float:
        self.looks += 1
        # It goes on, so that the budget of a placer within a placer ends too.
        return 0.0 if self.looks <= self.over_at else 1e9 + self.looks


@pytest.mark.parametrize("name", PLACERS.names())
@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("looks", [2, 40])
def test_a_placer_stops_when_the_clock_says_so(
    name: str, objective: str, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason="the extra `solvers` is not installed")
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
