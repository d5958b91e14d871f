"""Measured kernels: answered from their measurement, and told from their neighbours."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.tables import tables
from opmark.predictors.model.bundle import Bundle, load, save
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.intervals import NORMAL_90
from opmark.predictors.model.measured_kernels import (
    FAR,
    MEASURED,
    MEASURED_FILE,
    OTHER_TYPE,
    UNSEEN,
    measured_from,
    measured_text,
    width_factors,
)
from opmark.predictors.model.training import train_on

ROWS = law.rows(40, ("gemm", "softmax"), standard_error_hot=0.02, noise=0.3)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(ROWS, law.TARGET, hardware=law.HARDWARE)


def product(m: int, k: int, n: int, **more: object) -> Kernel:
    kernel = law.kernels("gemm", 1)[0]
    return Kernel.of("gemm", {**kernel.params, "m": m, "k": k, "n": n, **more})


def test_a_measured_kernel_is_answered_from_its_measurement(bundle: Bundle) -> None:
    exact, learned = (CostModel(bundle, exact=wanted) for wanted in (True, False))
    kernels = [row.kernel for row in ROWS]
    hot = np.array([row.latency_hot_ns for row in ROWS])
    assert np.allclose(exact.kernels(kernels).hot_ns, hot, rtol=1e-5)
    assert np.allclose(exact.kernels(kernels).rotated_ns, [row.latency_rotated_ns for row in ROWS], rtol=1e-5)
    assert np.allclose(np.log(exact.kernels(kernels).high_ns / hot), NORMAL_90 * 0.02, rtol=1e-3)
    assert np.abs(np.log(learned.kernels(kernels).hot_ns / hot)).max() > 0.1
    others = law.kernels("gemm", 20, seed=8)
    assert np.array_equal(exact.kernels(others).hot_ns, learned.kernels(others).hot_ns)


def test_rows_of_a_network_tell_what_they_rest_on(bundle: Bundle) -> None:
    measured = ROWS[0].kernel
    near = product(*(measured.params[name] + 1 for name in ("m", "k", "n")))  # type: ignore[operator]
    graph = law.graph("net", [measured, near, *law.kernels("pool", 1)])
    found = CostModel(bundle, missing=BYTES_MOVED, exact=True).network(graph)
    rows = {row.kernel: row for row in found.rows}
    assert (rows[measured].exact, rows[measured].distance) == (True, 0.0)
    assert not rows[near].exact
    smallest = min(measured.params[name] for name in ("m", "k", "n"))  # type: ignore[type-var]
    assert 0 < (rows[near].distance or 0) <= 1 / (smallest + 1) + 1e-9  # type: ignore[operator]
    (pool,) = law.kernels("pool", 1)
    assert (rows[pool].exact, rows[pool].distance) == (False, None)
    plain = CostModel(bundle, missing=BYTES_MOVED).network(graph)
    assert {(row.exact, row.distance) for row in plain.rows} == {(False, None)}
    alone = law.graph("alone", [measured])
    widths = [CostModel(bundle, exact=wanted).network(alone) for wanted in (True, False)]
    certain, doubtful = (np.log(one.high_ns / one.low_ns) for one in widths)
    assert certain < doubtful


def test_the_distance_is_that_of_the_worst_size_of_the_nearest() -> None:
    known = tables([law.measurement(product(16, 64, 64)), law.measurement(product(99, 64, 64))], law.HARDWARE)["gemm"]
    measured = measured_from(measured_text(known, ("dtype",)))
    assert measured is not None
    asked = [product(19, 64, 64), product(99, 64, 129), product(16, 64, 64), product(16, 64, 64, dtype="float16")]
    found, of_form = measured.distances(features(asked, None, law.HARDWARE))
    assert found[:3] == pytest.approx([20 / 17 - 1, 130 / 65 - 1, 0])
    assert np.isnan(found[3]), "another element type is no neighbour"
    assert of_form[:3] == pytest.approx(found[:3])
    assert np.isinf(of_form[3])


def test_a_kernel_of_another_form_has_no_neighbour_of_its_form() -> None:
    known = tables([law.measurement(product(size, 64, 64)) for size in (16, 99)], law.HARDWARE)["gemm"]
    measured = measured_from(measured_text(known, ("dtype",)))
    assert measured is not None
    turned = not product(16, 64, 64).params["trans_b"]
    asked = [product(16, 64, 64), product(16, 64, 64, trans_b=turned)]
    found, of_form = measured.distances(features(asked, None, law.HARDWARE))
    assert found == pytest.approx([0, 1]), "a flag counts as a factor of two"
    assert of_form[0] == pytest.approx(0)
    assert np.isinf(of_form[1])


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=9))
def test_intervals_grow_with_the_distance_from_the_form(distances: list[float]) -> None:
    found = width_factors(np.array([0.0, *sorted(distances), np.inf]))
    assert found[0] == 1
    assert (np.diff(found) >= 0).all()
    assert found[-1] > found[-2], "no kernel of the form is less evidence than any distance"


def test_a_kernel_of_a_form_that_nobody_measured_has_a_wider_interval() -> None:
    sizes = [(16 * (1 + number % 5), 32 * (1 + number % 7), 64) for number in range(35)]
    forms = ({"trans_a": False, "trans_b": True}, {"trans_a": True, "trans_b": False})
    rows = [law.measurement(product(*size, **form)) for size in sizes for form in forms]
    model = CostModel(train_on(rows, law.TARGET, hardware=law.HARDWARE))
    found = model.kernels([product(32, 64, 64, **forms[0]), product(32, 64, 64, trans_a=True, trans_b=True)])
    assert not found.extrapolated.any(), "both flags were measured, though not together"
    usual, other = np.log(found.high_ns / found.hot_ns)
    assert other == pytest.approx(2.4 * usual)
    noisy = [replace(row, standard_error_hot=0.3) for row in rows]
    found = CostModel(train_on(noisy, law.TARGET, hardware=law.HARDWARE)).kernels(
        [product(32, 64, 64, **forms[0]), product(32, 64, 64, trans_a=True, trans_b=True)]
    )
    usual, other = np.log(found.high_ns / found.hot_ns)
    assert other == pytest.approx(usual), "the noise of labels does not grow with the distance"


def test_the_evidence_is_that_of_the_same_operation_and_type() -> None:
    def reduction(op: str, shape: tuple[int, ...], axis: int, dtype: str = "float32") -> Kernel:
        return Kernel.of("reduce", {"op": op, "shape": shape, "axes": (axis,), "keep": True, "k": 0, "dtype": dtype})

    apart = [law.measurement(reduction("l2", (24, 200 + size), 0)) for size in range(4)]
    sums = [law.measurement(reduction("cumsum", (24, 200), 1, dtype)) for dtype in ("float32", "bool")]
    known = tables([*apart, *sums], law.HARDWARE)["reduce"]
    measured = measured_from(measured_text(known, ("op",)))
    assert measured is not None
    asked = {
        reduction("l2", (30, 300), 0): MEASURED,
        # its rows lie together, so that no size inside them compares
        reduction("l2", (300, 300), 1): FAR,
        # too small for that to matter
        reduction("l2", (8, 8), 1): MEASURED,
        reduction("l2", (24, 200), 0, "int32"): OTHER_TYPE,
        reduction("cumsum", (24, 200), 1): MEASURED,
        reduction("l1", (24, 200), 0): UNSEEN,
        # both were measured, and not together
        reduction("cumsum", (24, 200), 1, "float64"): OTHER_TYPE,
    }
    inputs = features(list(asked), None, law.HARDWARE)
    assert measured.evidence(inputs, measured.distances(inputs)[0]).tolist() == list(asked.values())


def test_it_survives_a_folder_and_older_predictors_have_none(bundle: Bundle, tmp_path: Path) -> None:
    save(bundle, tmp_path / "bundle")
    again = load(tmp_path / "bundle")
    kernels = [row.kernel for row in ROWS]
    first, second = (CostModel(one, exact=True).kernels(kernels).hot_ns for one in (bundle, again))
    assert np.array_equal(first, second)
    texts = {name: text for name, text in bundle.kinds["gemm"].texts.items() if name != MEASURED_FILE}
    older = Bundle(manifest=bundle.manifest, kinds={"gemm": replace(bundle.kinds["gemm"], texts=texts)})
    assert older.kinds["gemm"].measured is None
    learned = CostModel(bundle).kernels(kernels[:40]).hot_ns
    assert np.array_equal(CostModel(older, exact=True).kernels(kernels[:40]).hot_ns, learned)


@pytest.mark.parametrize(
    ("good", "bad"),
    [('"hot_ns": [', '"hot_ns": [-1, '), ('"codes": [', '"codes": ["colour", '), ('"keys"', '"locks"')],
)
def test_damage_is_named(bundle: Bundle, good: str, bad: str) -> None:
    kind = bundle.kinds["gemm"]
    texts = {**kind.texts, MEASURED_FILE: kind.texts[MEASURED_FILE].replace(good, bad)}
    with pytest.raises(ContentError, match="measured kernels of kind 'gemm' cannot be read"):
        replace(kind, texts=texts).measured  # noqa: B018


def test_measured_kernels_of_other_features_are_refused(bundle: Bundle) -> None:
    kind = bundle.kinds["gemm"]
    texts = {**kind.texts, MEASURED_FILE: kind.texts[MEASURED_FILE].replace('"m": [', '"rows": [')}
    broken = Bundle(manifest=bundle.manifest, kinds={"gemm": replace(kind, texts=texts)})
    with pytest.raises(ContentError, match="the measured kernels of kind 'gemm' have other features"):
        CostModel(broken).kernels([ROWS[0].kernel])


def test_a_feature_may_be_called_dtype() -> None:
    """That of `quantize` is: the type that it makes."""
    (table,) = tables(law.rows(12, ("gemm",)), law.HARDWARE).values()
    raw = {**table.inputs.raw, "dtype": np.arange(len(table.inputs), dtype=np.float64)}
    found = measured_from(measured_text(replace(table, inputs=replace(table.inputs, raw=raw)), ("dtype",)))
    assert found is not None
    assert found.raw["dtype"].tolist() == list(range(12))
