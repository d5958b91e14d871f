"""Predictors that come with OpMark are donors of their target, the newest of each device."""

import pytest

from opmark.core.errors import UnavailableError
from opmark.core.workspace import Workspace
from opmark.predictors.transfer import shipped_donors as module
from opmark.predictors.transfer.shipped_donors import shipped_donors


def test_every_device_with_the_target_gives_its_newest() -> None:
    donors = shipped_donors("onnxruntime-cpu-t1")
    devices = [donor.name.partition("/")[0] for donor in donors]
    assert len(set(devices)) == len(devices) >= 3
    assert all(donor.name.endswith(":onnxruntime-cpu-t1") for donor in donors)
    assert all(donor.model.bundle.target.name == "onnxruntime-cpu-t1" for donor in donors)
    assert "amd-26-2-1-2vcpu-l3-32m/1.0.0:onnxruntime-cpu-t1" not in [donor.name for donor in donors]


def test_a_target_that_nobody_measured_has_none() -> None:
    assert shipped_donors("null-a-t1") == []


def test_without_shipped_content_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> Workspace:
        raise UnavailableError("nothing is shipped")

    monkeypatch.setattr(module, "shipped_content", nothing)
    assert shipped_donors("onnxruntime-cpu-t1") == []
