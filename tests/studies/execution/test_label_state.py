"""The state beside an execution, and the readings at the state of the labels of the release behind a predictor."""

import math
from pathlib import Path

import pytest
from tests.studies.execution.tiny import two_cores

from opmark.core.workspace import Workspace
from opmark.leaderboards.problem.problem import smallest_problem
from opmark.studies.execution import label_state
from opmark.studies.execution.label_state import label_readings, state_of

CALM = {"compute": 40.0, "memory": 100.0}


def test_the_state_is_the_mean_logarithm_before_and_after() -> None:
    before, after = {"compute": 40.0, "memory": 200.0}, {"compute": 160.0, "memory": 200.0}
    assert state_of([before], [after], [CALM], [1.0]) == pytest.approx((math.log(2), math.log(2)))


def test_a_device_counts_by_its_work() -> None:
    slow = {"compute": 80.0, "memory": 100.0}
    state = state_of([CALM, slow], [CALM, slow], [CALM, CALM], [3.0, 1.0])
    assert state == pytest.approx((math.log(2) / 4, 0.0))


def test_nothing_is_known_without_a_usual_reading() -> None:
    assert state_of([CALM], [CALM], [{}], [1.0]) == (0.0, 0.0)
    assert state_of([{}], [{}], [CALM], [1.0]) == (0.0, 0.0)
    assert state_of([CALM], [CALM], [], [1.0]) == (0.0, 0.0)


def test_a_machine_without_a_release_has_no_label_state(tmp_path: Path) -> None:
    assert label_readings(smallest_problem(), Workspace(tmp_path)) == tuple(
        {} for _ in smallest_problem().cluster.devices
    )


def test_the_readings_are_those_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    root = Path(__file__).resolve().parents[3]
    device = "intel-6-167-8-2vcpu-l3-105m"
    monkeypatch.setattr(label_state, "device_slug", lambda: device)
    cluster = two_cores((f"{device}/onnxruntime-cpu-t1", f"{device}/torch-eager-t1"))
    found = label_readings(replace(smallest_problem(), cluster=cluster), Workspace(root))
    assert [set(one) for one in found] == [{"compute", "memory"}] * 2
    assert all(10_000 < one["compute"] < 1_000_000 for one in found)
    monkeypatch.setattr(label_state, "device_slug", lambda: "another-machine")
    assert label_readings(replace(smallest_problem(), cluster=cluster), Workspace(root)) == ({}, {})
