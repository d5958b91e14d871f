"""A predictor to keep, from few samples: what validation chose, the donor inside, and what the card says."""

import math
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.measurements.measurement import Measurement
from opmark.predictors.inputs.features import Hardware, features
from opmark.predictors.learners.roofline import Roofline
from opmark.predictors.model.adapted_learner import TRANSFERRED, Adapted, adapted_from
from opmark.predictors.model.bundle import Bundle, KindPredictor, load, save
from opmark.predictors.model.bundle_card import card
from opmark.predictors.model.bundle_paths import refuse_to_replace
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.intervals import outside
from opmark.predictors.model.manifest import TrainingRelease
from opmark.predictors.model.training import train_on
from opmark.predictors.transfer import choosing
from opmark.predictors.transfer.adapted_bundle import transferred
from opmark.predictors.transfer.choosing import Donor
from opmark.predictors.transfer.methods import METHODS

HERE = replace(law.TARGET, device="acme-2")
# one cache fewer than the donor has: the columns of its features are others
SMALLER = Hardware(vector_bytes=32, cache_bytes=(32 << 10, 8 << 20))
ORIGIN = TrainingRelease(device="acme-2", version="1.0.0", id="abc")
FACTORS = {"gemm": 2.0, "softmax": 3.0}


def slower(count: int, kinds: tuple[str, ...] = ("gemm", "softmax")) -> list[Measurement]:
    """The machine of `law`, but products take twice and softmax three times as long; rotated ones 1.2 times that."""
    found = []
    for kind in kinds:
        for kernel in law.kernels(kind, count, 5):
            noise = FACTORS.get(kind, 2.0) * math.exp(random.Random(kernel.key).gauss(0, 0.01))
            hot, rotated = noise * law.hot_ns(kernel), 1.2 * noise * law.rotated_ns(kernel)
            found.append(law.measurement(kernel, latency_hot_ns=hot, latency_rotated_ns=rotated))
    return found


@cache
def donor() -> Donor:
    bundle = train_on(law.rows(150), law.TARGET, hardware=law.HARDWARE)
    return Donor(name="acme-1/1.0.0:onnxruntime-cpu-t1", model=CostModel(bundle, missing="bytes-moved"))


def made(measurements: list[Measurement], samples: int | None = 24, **changes: object) -> Bundle:
    options = {"hardware": SMALLER, "origin": ORIGIN, "samples": samples, **changes}
    return transferred(measurements, HERE, [donor()], **options)  # type: ignore[arg-type]


@cache
def few() -> Bundle:
    return made(slower(60))


def test_few_samples_and_a_donor_give_a_good_predictor() -> None:
    bundle = few()
    assert bundle.manifest.estimator == TRANSFERRED
    transfer = bundle.manifest.transfer
    assert transfer is not None
    assert (transfer.samples, transfer.donor, transfer.donor_id) == (24, donor().name, donor().model.bundle.manifest.id)
    assert set(transfer.validation) == set(METHODS)
    assert transfer.validation[transfer.method] == min(transfer.validation.values())
    asked = law.kernels("gemm", 80, 9)
    found = CostModel(bundle).kernels(asked)
    truth = 2 * np.array([law.hot_ns(kernel) for kernel in asked])
    assert np.median(np.abs(found.hot_ns / truth - 1)) < 0.1
    rotated = 2 * 1.2 * np.array([law.rotated_ns(kernel) for kernel in asked])
    assert np.median(np.abs(found.rotated_ns / rotated - 1)) < 0.15
    assert np.mean((found.low_ns < truth) & (truth < found.high_ns)) > 0.8


def test_a_kind_without_samples_is_the_donor_s_times_the_factor_and_doubted() -> None:
    bundle = few()
    entry = bundle.manifest.kinds["conv"]
    assert (entry.rows, entry.metrics, entry.features) == (0, {}, ())
    asked = law.kernels("conv", 20, 9)
    found, given = CostModel(bundle).kernels(asked), donor().model.kernels(asked)
    assert 1.5 < float(np.median(found.hot_ns / given.hot_ns)) < 3.5
    assert (found.high_ns >= 2 * found.hot_ns * 0.999).all()
    assert "| conv | 0 | 0 | – | – |" in card(bundle.manifest)


@pytest.mark.parametrize("method", list(METHODS))
def test_whatever_is_chosen_is_the_same_from_its_folder(method: str, tmp_path: Path) -> None:
    bundle = made(slower(30), methods=(method,))
    save(bundle, tmp_path / "bundle")
    loaded = load(tmp_path / "bundle", target_name=HERE.name)
    assert loaded.manifest.transfer == bundle.manifest.transfer
    kinds = ("gemm", "softmax") if method in choosing.WITHOUT_DONOR else law.KIND_NAMES
    assert set(bundle.kinds) == set(kinds)
    asked = [kernel for kind in kinds for kernel in law.kernels(kind, 20, 9)]
    before, after = CostModel(bundle).kernels(asked), CostModel(loaded).kernels(asked)
    assert np.array_equal(before.hot_ns, after.hot_ns)
    assert np.array_equal(before.rotated_ns, after.rotated_ns)
    assert (before.hot_ns > 0).all()
    text = (tmp_path / "bundle" / "README.md").read_text()
    assert f"| {method} |" in text
    assert ("no other predictor" in text) == (method in choosing.WITHOUT_DONOR)


def test_a_stranger_is_left_out() -> None:
    odd = [
        replace(row, latency_hot_ns=1e3 * (1 + int(row.kernel.key, 16) % 97), latency_rotated_ns=1e6)
        for row in law.rows(60, ("gemm", "softmax"))
    ]
    stranger = Donor(name="stranger", model=CostModel(train_on(odd, law.TARGET), missing="bytes-moved"))
    bundle = transferred(slower(60), HERE, [stranger], hardware=SMALLER, origin=ORIGIN)
    assert bundle.manifest.transfer is not None
    assert bundle.manifest.transfer.donor == ""
    assert set(bundle.kinds) == {"gemm", "softmax"}


def test_codes_of_the_donor_are_found_among_this_device_s_columns() -> None:
    bundle = few()
    inputs = features(law.kernels("gemm", 30, 5), None, SMALLER)
    entry = bundle.manifest.kinds["gemm"]
    assert entry.features == inputs.names
    assert entry.features != donor().model.bundle.manifest.kinds["gemm"].features
    assert {inputs.names[column] for column, _ in entry.range.codes} == {
        inputs.names[column] for column in inputs.categorical
    }
    assert outside(inputs, entry.range).mean() < 0.3


def test_training_networks_give_the_constants_else_a_donor_of_the_same_runtime() -> None:
    graphs = {
        name: law.graph(name, law.kernels("gemm", 30, seed), weight_bytes=64 << 20) for seed, name in enumerate("abc")
    }
    networks = [law.network(graph, share=0.5) for graph in graphs.values()]
    fitted = made(slower(30), networks=networks, graphs=graphs)
    assert fitted.constants.networks == ("a", "b", "c")
    assert fitted.manifest.transfer is not None
    assert (fitted.manifest.transfer.constants, fitted.manifest.transfer.prior) == ("", "")
    taken = few()
    assert taken.constants == donor().model.bundle.constants
    assert taken.manifest.transfer is not None
    assert taken.manifest.transfer.constants == donor().name
    torch = replace(HERE, backend="torch-eager", provider="")
    other = transferred(slower(30), torch, [donor()], hardware=SMALLER, origin=ORIGIN, samples=20)
    assert other.manifest.transfer is not None
    assert other.manifest.transfer.constants == ""


def test_few_training_networks_move_the_constants_of_a_donor_with_the_same_runtime() -> None:
    graph = law.graph("a", law.kernels("gemm", 30, 0), weight_bytes=64 << 20)
    knowing = replace(donor().model.bundle.constants, ceiling=0.3, networks=("many",))
    manifest = replace(donor().model.bundle.manifest, constants=knowing)
    begun = Donor(name="there", model=CostModel(Bundle(manifest=manifest, kinds=donor().model.bundle.kinds)))
    torch = replace(HERE, backend="torch-eager", provider="")
    fitted, alone, other = (
        transferred(
            slower(30),
            target,
            [one],
            hardware=SMALLER,
            origin=ORIGIN,
            networks=[law.network(graph, share=0.5)],
            graphs={"a": graph},
        )
        for one, target in ((begun, HERE), (donor(), HERE), (begun, torch))
    )
    assert fitted.constants.networks == ("a",)
    assert fitted.manifest.transfer is not None
    assert (fitted.manifest.transfer.constants, fitted.manifest.transfer.prior) == ("", "there")
    assert fitted.constants.ceiling < alone.constants.ceiling
    assert "fitted around those of there" in card(fitted.manifest)
    assert other.manifest.transfer is not None
    assert other.manifest.transfer.prior == ""


def test_what_was_transferred_can_be_transferred_on() -> None:
    second = Donor(name="second", model=CostModel(few(), missing="bytes-moved"))
    bundle = transferred(slower(40), HERE, [second], hardware=law.HARDWARE, origin=ORIGIN, samples=20)
    asked = law.kernels("gemm", 40, 9)
    truth = 2 * np.array([law.hot_ns(kernel) for kernel in asked])
    assert np.median(np.abs(CostModel(bundle).kernels(asked).hot_ns / truth - 1)) < 0.15


def test_a_donor_of_other_features_is_refused() -> None:
    bundle = few()
    predictor = bundle.kinds["gemm"]
    texts = {name: text.replace('"log_flops"', '"flops"') for name, text in predictor.texts.items()}
    odd = KindPredictor(kind="gemm", estimator=TRANSFERRED, entry=predictor.entry, texts=texts)
    with pytest.raises(ContentError, match="the donor knows other features of kind 'gemm'"):
        odd.fitted.predict(features(law.kernels("gemm", 3), None, SMALLER))
    with pytest.raises(ContentError, match="not a transferred predictor"):
        KindPredictor(kind="gemm", estimator=TRANSFERRED, entry=predictor.entry, texts={}).fitted  # noqa: B018


def test_too_few_rows_are_said() -> None:
    with pytest.raises(NothingSelectedError, match="1000 samples asked for, and"):
        made(slower(20), 1000)
    with pytest.raises(NothingSelectedError, match="nothing to transfer between"):
        transferred(slower(20), HERE, [], hardware=SMALLER, origin=ORIGIN)
    with pytest.raises(NothingSelectedError, match="too few samples to validate on"):
        made(slower(1, ("gemm",)), None)


def test_a_law_of_its_own_needs_no_donor() -> None:
    law_only = Adapted(law=Roofline(ns_per_flop=1e-2, constant_ns=100.0), limits=(0.0, 30.0))
    inputs = features(law.kernels("gemm", 10), None, law.HARDWARE)
    nobody = np.full(10, np.nan)
    assert np.array_equal(adapted_from(law_only.files()).hot_ns(inputs, nobody), law_only.hot_ns(inputs, nobody))
    assert law_only.hot_ns(inputs, nobody) == pytest.approx(1e-2 * inputs.flops + 100)


def test_a_whole_predictor_is_not_replaced(tmp_path: Path) -> None:
    save(few(), tmp_path / "few")
    refuse_to_replace(tmp_path / "few")
    refuse_to_replace(tmp_path / "none")
    save(donor().model.bundle, tmp_path / "whole")
    with pytest.raises(ContentError, match="not replaced by one of few samples"):
        refuse_to_replace(tmp_path / "whole")
