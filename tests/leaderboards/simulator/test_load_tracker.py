"""The load tracker says what the exact loads say, whatever moved before."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.test_placers import branchy
from tests.leaderboards import examples
from tests.leaderboards.compiled_module import CompiledModule

from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.simulator.simulate import costs_and_peaks
from opmark.leaderboards.simulator.steady_state import server_loads

load_tracker = CompiledModule("opmark.leaderboards.simulator.load_tracker")


def loads(problem: Problem) -> Problem:
    return replace(problem, objective="throughput", unit="ns", memory_mode="sum")


def assert_exact(problem: Problem, tracker: "load_tracker.LoadTracker") -> None:
    exact = server_loads(problem, Placement(device=tracker.device.copy()), profile_named(problem.profile))
    slots = problem.arrays.device_slots
    assert [ns / count for ns, count in zip(tracker.device_ns.tolist(), slots.tolist(), strict=True)] == pytest.approx(
        [float(each) for each in exact.device_ns]
    )
    assert tracker.port_ns.tolist() == list(exact.port_ns)
    costs, peaks = costs_and_peaks(problem, tracker.device[None, :])
    assert load_tracker.busiest_ns(tracker)[0] == costs[0]
    assert tracker.held_bytes.tolist() == peaks[0].tolist()


def test_loads_kept_up_to_date_are_those_counted_anew() -> None:
    problem = loads(branchy(blocks=5))
    arrays = problem.arrays
    tracker = load_tracker.load_tracker(arrays, contention=True)
    able = [np.flatnonzero(row >= 0) for row in arrays.run_ns]
    draw = np.random.default_rng(0)
    for unit, devices in enumerate(able):
        load_tracker.put_unit(tracker, unit, int(devices[0]))
    for _ in range(40):
        back = []
        for unit in draw.integers(arrays.units, size=6).tolist():
            back.append((unit, int(tracker.device[unit])))
            load_tracker.put_unit(tracker, unit, int(draw.choice(able[unit])))
        assert_exact(problem, tracker)
        before = tracker.device.copy()
        for unit, device in reversed(back):
            load_tracker.put_unit(tracker, unit, device)
        assert_exact(problem, tracker)
        for unit, device in enumerate(before.tolist()):
            load_tracker.put_unit(tracker, unit, device)
    load_tracker.clear(tracker, arrays.host, arrays.tensor_output)
    fresh = load_tracker.load_tracker(arrays, contention=True)
    for name in ("device_ns", "port_ns", "held_bytes", "readers", "weight_users", "missing"):
        assert (getattr(tracker, name) == getattr(fresh, name)).all(), name


@settings(max_examples=30, deadline=None)
@given(examples.problems(), st.integers(0, 2**16))
def test_any_problem_has_its_exact_loads(problem: Problem, seed: int) -> None:
    problem = loads(problem)
    arrays = problem.arrays
    draw = np.random.default_rng(seed)
    rows = np.array([[draw.choice(np.flatnonzero(row >= 0)) for row in arrays.run_ns] for _ in range(3)])
    tracker = load_tracker.load_tracker(arrays, contention=True)
    for row in rows:
        for unit, device in enumerate(row.tolist()):
            load_tracker.put_unit(tracker, unit, device)
        if tracker.missing[0] == 0:
            assert_exact(problem, tracker)
