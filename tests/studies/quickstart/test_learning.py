"""A quickstart corrects the predictor of another device, or learns alone where there is none."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from tests.predictors import law

from opmark.core.measurements.measurement import Measurement
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import train_on
from opmark.predictors.transfer import adapted_bundle
from opmark.predictors.transfer.choosing import Donor
from opmark.studies.quickstart import learning
from opmark.studies.quickstart.learning import donor_of, learned, lesson

HERE = replace(law.TARGET, device="acme-2")


def release(rows: list[Measurement]) -> Any:
    """What training needs of a release."""
    return SimpleNamespace(
        device=HERE.device,
        version="1.0.0",
        id="abc",
        manifest=SimpleNamespace(environments=(), provenance=SimpleNamespace(kind="measured")),
        measurements=lambda _: rows,
        network_measurements=lambda _: (),
        fusions=lambda _: (),
        target=lambda _: HERE,
    )


def rows(count: int) -> list[Measurement]:
    """The machine of `law`, twice as slow."""
    return [
        law.measurement(kernel, latency_hot_ns=2 * law.hot_ns(kernel), latency_rotated_ns=2 * law.rotated_ns(kernel))
        for kind in ("gemm", "softmax")
        for kernel in law.kernels(kind, count, 5)
    ]


@cache
def donor() -> Donor:
    bundle = train_on(law.rows(150), law.TARGET, hardware=law.HARDWARE)
    return Donor(name="acme-1/1.0.0:onnxruntime-cpu-t1", model=CostModel(bundle, missing="bytes-moved"))


@pytest.fixture(autouse=True)
def hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapted_bundle, "release_hardware", lambda _: Hardware())


def test_the_donor_is_corrected_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "shipped_donors", lambda _: [donor()])
    bundle = learned(release(rows(20)), HERE.name, {})
    assert bundle.manifest.transfer is not None
    assert "scratch" not in bundle.manifest.transfer.validation
    assert donor_of(bundle) == "acme-1/1.0.0"
    assert lesson(bundle) == "The predictor of acme-1/1.0.0, corrected by 40 kernels of this machine"
    asked = law.kernels("gemm", 20, 9)
    told = CostModel(bundle).kernels(asked).hot_ns
    assert told == pytest.approx([2 * law.hot_ns(kernel) for kernel in asked], rel=0.3)


def test_without_a_donor_the_machine_teaches_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "shipped_donors", lambda _: [])
    bundle = learned(release(rows(20)), HERE.name, {})
    assert (bundle.manifest.transfer, donor_of(bundle)) == (None, None)
    assert lesson(bundle) == "Learned from 40 kernels of this machine alone"


def test_samples_of_one_shape_teach_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "shipped_donors", lambda _: [donor()])
    bundle = learned(release(rows(1)[:1]), HERE.name, {})
    assert bundle.manifest.transfer is None
