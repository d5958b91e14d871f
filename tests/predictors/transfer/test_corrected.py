"""A whole release corrects another device's predictor, kind by kind, where held-out rows say that this tells more."""

import math
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import Measurement
from opmark.kinds import KINDS
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.tables import Table, tables
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.model.adapted_learner import TRANSFERRED, FittedTransfer
from opmark.predictors.model.bundle import Bundle, load, save
from opmark.predictors.model.bundle_card import card
from opmark.predictors.model.bundle_paths import refuse_to_replace
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.intervals import calibrate, outside
from opmark.predictors.model.manifest import CORRECTED, TransferRecord
from opmark.predictors.model.measured_kernels import MEASURED, UNSEEN
from opmark.predictors.model.training import train_on
from opmark.predictors.transfer.corrected import Corrected, donor_kind, with_donor_ranges


def wavy(kernel: Kernel) -> float:
    """The law's latency with waves that only many rows show."""
    n, k = (math.log(kernel.params[name]) for name in ("n", "k"))
    return law.hot_ns(kernel) * math.exp(0.8 * math.sin(2 * n + 1.5 * k))


def measured(count: int, seed: int, factor: float = 1.0) -> list[Measurement]:
    found = []
    for kernel in law.kernels("gemm", count, seed):
        hot = factor * wavy(kernel) * math.exp(random.Random(kernel.key).gauss(0, 0.01))
        found.append(law.measurement(kernel, latency_hot_ns=hot, latency_rotated_ns=1.5 * hot))
    return found


def table(rows: list[Measurement]) -> Table:
    return tables(rows, law.HARDWARE)["gemm"]


@cache
def donor() -> Bundle:
    return train_on(measured(600, 1), law.TARGET, hardware=law.HARDWARE)


@cache
def fitted() -> FittedTransfer:
    rows = table(measured(60, 5, factor=2.0))
    found = Corrected(donor=donor()).fit(rows.inputs, rows.labels)
    assert isinstance(found, FittedTransfer)
    return found


def test_a_ratio_tells_more_than_few_rows() -> None:
    rows, asked = table(measured(60, 5, factor=2.0)), law.kernels("gemm", 80, 9)
    inputs = features(asked, KINDS.load("gemm"), law.HARDWARE)
    truth = 2 * np.array([wavy(kernel) for kernel in asked])
    assert fitted().donor is not None
    assert fitted().held_out is not None
    own = fitted().predict(inputs)
    alone = Corrected(donor=Bundle(manifest=donor().manifest, kinds={})).fit(rows.inputs, rows.labels).predict(inputs)
    errors = [np.abs(np.log(found.hot_ns / truth)).mean() for found in (own, alone)]
    assert errors[0] < 0.7 * errors[1]
    assert np.median(np.abs(own.rotated_ns / own.hot_ns / 1.5 - 1)) < 0.1


def test_intervals_contain_the_donor_s_own_errors() -> None:
    """Held-out rows show none of them where the donor measured the same kernels."""
    rows = table(measured(60, 5, factor=2.0))
    errors, _ = calibrate(Corrected(donor=donor()), fitted(), rows.inputs, rows.labels)
    given = donor().kinds["gemm"].entry.errors.half_width
    alone, _ = calibrate(Corrected(donor=donor()), without(fitted()), rows.inputs, rows.labels)
    assert errors.half_width == pytest.approx(math.hypot(alone.half_width, given))
    assert errors.group_deviation > alone.group_deviation


def without(found: FittedTransfer) -> FittedTransfer:
    return replace(found, inherited_half_width=0.0)


def test_what_was_learned_is_the_same_from_its_files() -> None:
    inputs = features(law.kernels("gemm", 30, 9), KINDS.load("gemm"), law.HARDWARE)
    again = Corrected(donor=donor()).restore(fitted().files())
    assert np.array_equal(again.predict(inputs).hot_ns, fitted().predict(inputs).hot_ns)
    assert np.array_equal(again.predict(inputs).rotated_ns, fitted().predict(inputs).rotated_ns)


def test_a_donor_of_other_laws_is_not_used() -> None:
    odd = [
        replace(row, latency_hot_ns=1e3 * (1 + int(row.kernel.key, 16) % 97), latency_rotated_ns=1e6)
        for row in law.rows(60, ("gemm",))
    ]
    rows = table(list(law.rows(60, ("gemm",))))
    found = Corrected(donor=train_on(odd, law.TARGET, hardware=law.HARDWARE)).fit(rows.inputs, rows.labels)
    assert isinstance(found, FittedTransfer)
    assert found.donor is None


def test_a_corrected_predictor_is_one_of_a_whole_release(tmp_path: Path) -> None:
    here = replace(law.TARGET, device="acme-2")
    learner = Corrected(donor=donor())
    bundle = train_on(measured(60, 5, factor=2.0), here, estimator=TRANSFERRED, learner=learner, hardware=law.HARDWARE)
    record = TransferRecord(
        samples=60, method=CORRECTED, donor="acme-1/1.0.0:cpu", donor_id="ab", divergence=0.1, validation={}
    )
    save(Bundle(manifest=replace(bundle.manifest, transfer=record), kinds=bundle.kinds), tmp_path / "bundle")
    loaded = load(tmp_path / "bundle")
    asked = law.kernels("gemm", 20, 9)
    assert np.array_equal(CostModel(loaded).kernels(asked).hot_ns, CostModel(bundle).kernels(asked).hot_ns)
    assert "acme-1/1.0.0:cpu" in card(loaded.manifest)
    with pytest.raises(ContentError, match="whole release"):
        refuse_to_replace(tmp_path / "bundle")


def test_the_range_of_shapes_is_the_donor_s() -> None:
    here = replace(law.TARGET, device="acme-2")
    learner = Corrected(donor=donor())
    bundle = train_on(measured(40, 5, factor=2.0), here, estimator=TRANSFERRED, learner=learner, hardware=law.HARDWARE)
    asked = features(law.kernels("gemm", 200, 9), KINDS.load("gemm"), law.HARDWARE)
    found = with_donor_ranges(bundle, donor())
    beyond = [outside(asked, one.manifest.kinds["gemm"].range).mean() for one in (bundle, found, donor())]
    assert beyond[0] > beyond[1] == beyond[2]
    assert found.kinds["gemm"].entry == found.manifest.kinds["gemm"]
    # What judges a corrected predictor has the ranges that a stored one has.
    evidence = Evidence(target=here, measurements=[], donor=donor())
    assert evidence.as_stored(bundle, TRANSFERRED).manifest.kinds["gemm"].range == found.manifest.kinds["gemm"].range
    assert evidence.as_stored(bundle, "lightgbm") is bundle


def test_an_operation_that_only_the_donor_measured_is_no_guess() -> None:
    known = law.rows(200, ("elementwise",))
    other = train_on(known, law.TARGET, hardware=law.HARDWARE)
    mine = [row for row in known if row.kernel.params["op"] in {"add", "relu", "mul"}]
    (strange,) = [row.kernel for row in known if row.kernel.params["op"] == "sqrt"][:1]
    bundles = [
        train_on(mine, law.TARGET, hardware=law.HARDWARE),
        with_donor_ranges(
            train_on(mine, law.TARGET, estimator=TRANSFERRED, learner=Corrected(donor=other), hardware=law.HARDWARE),
            other,
        ),
    ]
    alone, corrected = (CostModel(one).parts(law.graph("one", [strange])) for one in bundles)
    assert bundles[1].kinds["elementwise"].asks_donor
    assert (alone.evidence[0], corrected.evidence[0]) == (UNSEEN, MEASURED)


def test_a_kind_that_the_donor_lacks_goes_by_its_bytes() -> None:
    inputs = features(law.kernels("softmax", 10), KINDS.load("softmax"), law.HARDWARE)
    kind = donor_kind("softmax", donor())
    assert kind.learner is None
    assert (kind.latencies(inputs).hot_ns > 0).all()
