"""Traces: what they hold, that they re-validate, and that a changed one does not."""

import copy
import json

import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import graph, heft_canonical, pair

from opmark.core.errors import PlacementError
from opmark.core.files import json_text
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PROFILES
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.memory import memory_steps
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace


@settings(max_examples=150, deadline=None)
@given(examples.placed(examples.rich))
def test_every_trace_validates_to_its_cost(case: tuple[Problem, dict[str, str]]) -> None:
    problem, places = case
    for profile in PROFILES:
        if profile.name == "atomic_calls":  # shares of accelerators may need one another's results
            continue
        found = evaluate(problem, Solution(device=places), profile)
        trace = json.loads(json_text(chrome_trace(problem, found, profile)))
        assert check_trace(problem, trace) == found.cost


@settings(max_examples=150, deadline=None)
@given(examples.placed(examples.rich))
def test_the_memory_curve_peaks_where_the_simulator_says(case: tuple[Problem, dict[str, str]]) -> None:
    problem, places = case
    found = evaluate(problem, Solution(device=places))
    if problem.memory_mode == "liveness":
        steps = memory_steps(problem, found.placement, found.schedule)
        assert [max(held for _, held in row) for row in steps] == found.schedule.peak_bytes.tolist()


def spans(trace: dict) -> list[dict]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_what_a_trace_shows() -> None:
    problem = heft_canonical()
    trace = chrome_trace(problem, attempt(problem, "heft", budget_s=1).evaluation)
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert {"devices", "links", "P1", "P2", "P3", "P1 → P2"} <= names
    assert {event["name"] for event in trace["traceEvents"] if event["ph"] == "C"} == {
        "memory P1",
        "memory P2",
        "memory P3",
    }
    first = min(spans(trace), key=lambda event: event["args"]["start_ns"])
    assert first["name"] == "T1"
    assert first["dur"] * 1000 == first["args"]["end_ns"] - first["args"]["start_ns"]


def shifted(trace: dict, name: str, by_ns: int) -> dict:
    changed = copy.deepcopy(trace)
    event = next(event for event in spans(changed) if event["name"] == name)
    event["args"]["start_ns"] += by_ns
    event["args"]["end_ns"] += by_ns
    return changed


def test_a_changed_trace_is_refused() -> None:
    problem = graph({"a": 10, "b": 10, "c": 10, "d": 10}, [("a", ["b"]), ("c", ["d"])], pair())
    found = evaluate(problem, Solution(device={"a": "d0", "b": "d1", "c": "d0", "d": "d1"}))
    trace = chrome_trace(problem, found)
    assert check_trace(problem, trace) == found.cost
    with pytest.raises(PlacementError, match=r"unit 'b' starts before 'a\.out' is there"):
        check_trace(problem, shifted(trace, "b", -1))
    with pytest.raises(PlacementError, match=r"'a\.out' does not reach 'd1'"):
        check_trace(problem, shifted(trace, "a.out", -1))
    with pytest.raises(PlacementError, match="more than 1 things at once"):
        check_trace(problem, shifted(trace, "c", -5))
    late = shifted(trace, "d", 100)
    assert check_trace(problem, late) == found.cost + 100, "a trace may be slow, not impossible"
    stretched = copy.deepcopy(trace)
    spans(stretched)[0]["args"]["end_ns"] -= 1
    with pytest.raises(PlacementError, match="takes 9 ns in the trace and 10 ns by the problem"):
        check_trace(problem, stretched)
    missing = {**trace, "traceEvents": [event for event in trace["traceEvents"] if event["name"] != "a"]}
    with pytest.raises(PlacementError, match="every unit exactly once"):
        check_trace(problem, missing)
    with pytest.raises(PlacementError, match="not of this"):
        check_trace(heft_canonical(), trace)
