"""The state beside an execution, and the usual readings of the release behind a predictor."""

import math
from pathlib import Path

import pytest
from tests.studies.execution.tiny import two_cores

from opmark.core.workspace import Workspace
from opmark.leaderboards.problem.problem import smallest_problem
from opmark.studies.execution import usual_state
from opmark.studies.execution.usual_state import state_of, usual_readings

USUAL = {"compute": 40.0, "memory": 100.0}


def test_the_state_is_the_mean_logarithm_before_and_after() -> None:
    before, after = {"compute": 40.0, "memory": 200.0}, {"compute": 160.0, "memory": 200.0}
    assert state_of([before], [after], [USUAL], [1.0]) == pytest.approx((math.log(2), math.log(2)))


def test_a_device_counts_by_its_work() -> None:
    slow = {"compute": 80.0, "memory": 100.0}
    state = state_of([USUAL, slow], [USUAL, slow], [USUAL, USUAL], [3.0, 1.0])
    assert state == pytest.approx((math.log(2) / 4, 0.0))


def test_nothing_is_known_without_a_usual_reading() -> None:
    assert state_of([USUAL], [USUAL], [{}], [1.0]) == (0.0, 0.0)
    assert state_of([{}], [{}], [USUAL], [1.0]) == (0.0, 0.0)
    assert state_of([USUAL], [USUAL], [], [1.0]) == (0.0, 0.0)


def test_a_machine_without_a_release_has_no_usual_state(tmp_path: Path) -> None:
    assert usual_readings(smallest_problem(), Workspace(tmp_path)) == tuple(
        {} for _ in smallest_problem().cluster.devices
    )


def test_the_usual_readings_are_those_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    root = Path(__file__).resolve().parents[3]
    device = "intel-6-167-8-2vcpu-l3-105m"
    monkeypatch.setattr(usual_state, "device_slug", lambda: device)
    cluster = two_cores((f"{device}/onnxruntime-cpu-t1", f"{device}/torch-eager-t1"))
    found = usual_readings(replace(smallest_problem(), cluster=cluster), Workspace(root))
    assert [set(one) for one in found] == [{"compute", "memory"}] * 2
    assert all(10_000 < one["compute"] < 1_000_000 for one in found)
    monkeypatch.setattr(usual_state, "device_slug", lambda: "another-machine")
    assert usual_readings(replace(smallest_problem(), cluster=cluster), Workspace(root)) == ({}, {})
