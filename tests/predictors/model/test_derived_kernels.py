"""Kernels of kinds that a table lacks: their rules, worked out by hand, and their marks in predictions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS, work_of
from opmark.predictors.model.bundle import Bundle, load, save
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.derived_kernels import BYTES, PARTS, WORK, derivation
from opmark.predictors.model.training import train_on

TABLE = ("gemm", "matmul", "softmax", "conv", "elementwise", "norm")


def kernel(kind: str, **parameters: object) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


HEADS = {
    "batch": 2,
    "heads": 3,
    "kv_heads": 3,
    "query_length": 10,
    "key_length": 20,
    "head_size": 8,
    "value_size": 16,
}
ATTENTION = kernel("attention", **HEADS, variant="efficient")
SIZES = {
    "batch": 1,
    "channels_in": 4,
    "channels_out": 8,
    "size": (9, 9),
    "kernel": (3, 3),
    "stride": (1, 1),
    "dilation": (1, 1),
    "groups": 1,
}


def flops(kernels: Sequence[Kernel]) -> float:
    return float(sum(work_of(one).flops for one in kernels))


def test_attention_is_its_parts() -> None:
    found = derivation(ATTENTION, TABLE)
    assert found.rule == PARTS
    scores, soft, context = (part for part, _ in found.parts)
    assert [factor for _, factor in found.parts] == [1.0] * 3
    assert (scores.params["batch_a"], scores.params["m"], scores.params["k"], scores.params["n"]) == ((6,), 10, 8, 20)
    assert soft.params["shape"] == (60, 20)
    assert (context.params["k"], context.params["n"]) == (20, 16)
    packed = kernel("attention", **HEADS, variant="packed", hidden=32)
    assert derivation(packed, TABLE).parts[-1][0].params["n"] == 3 * (8 + 8 + 16)


@pytest.mark.parametrize(
    ("one", "relative"),
    [
        (kernel("conv-backward", **SIZES, pads=(1, 1)), "conv"),
        (kernel("conv-transpose", **SIZES, pads=(1, 1, 1, 1), output_pads=(0, 0)), "conv"),
        (kernel("attention-backward", **HEADS, variant="efficient"), "matmul"),
    ],
)
def test_other_matrix_work_costs_its_relative_by_the_ratio_of_work(one: Kernel, relative: str) -> None:
    found = derivation(one, TABLE)
    assert found.rule == WORK
    assert found.parts[0][0].kind == relative
    scaled = sum(work_of(part).flops * factor for part, factor in found.parts)
    assert scaled == pytest.approx(flops([one]))


def test_matrix_work_without_a_relative_costs_a_product_of_equal_work() -> None:
    one = kernel("conv-transpose", **SIZES, pads=(1, 1, 1, 1), output_pads=(0, 0))
    ((part, factor),) = derivation(one, ("gemm",)).parts
    assert part.kind == "gemm"
    assert work_of(part).flops * factor == pytest.approx(flops([one]))
    assert derivation(one, ()).rule == BYTES


def test_all_else_moves_its_bytes() -> None:
    pool = kernel("softmax", shape=(4, 4), axis=1)
    assert derivation(pool, ("gemm",)).rule == BYTES
    assert derivation(pool, ("gemm",)).parts == ()


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    found = train_on(law.rows(40), law.TARGET, hardware=law.HARDWARE)
    kinds = {name: one for name, one in found.kinds.items() if name == "gemm"}
    manifest = replace(found.manifest, kinds={"gemm": found.manifest.kinds["gemm"]}, derives=True)
    return Bundle(manifest=manifest, kinds=kinds)


def test_predictions_say_what_was_derived(bundle: Bundle) -> None:
    soft = kernel("softmax", shape=(64, 256), axis=1)
    with pytest.raises(ContentError, match="no predictor for kind softmax"):
        CostModel(Bundle(manifest=replace(bundle.manifest, derives=False), kinds=bundle.kinds)).kernels([soft])
    model = CostModel(bundle)
    transposed = kernel("conv-transpose", **SIZES, pads=(1, 1, 1, 1), output_pads=(0, 0))
    ((part, factor),) = derivation(transposed, bundle.kinds).parts
    hot = model.kernels([transposed, part, soft]).hot_ns
    assert hot[0] == pytest.approx(factor * hot[1])
    moved = float(work_of(soft).moved_bytes)
    assert hot[2] == pytest.approx(bundle.manifest.anything.latency_ns(np.zeros(1), np.array([moved]))[0])
    graph = law.graph("net", [*law.kernels("gemm", 2), soft, transposed])
    found = model.network(graph)
    rules = {row.kernel.kind: row.derived for row in found.rows}
    assert rules == {"gemm": "", "softmax": BYTES, "conv-transpose": WORK}
    derived = sum(row.total_ns for row in found.rows if row.derived)
    assert found.derived_share == pytest.approx(derived / found.total_ns)
    assert found.unmodelled == ()


def test_a_bundle_keeps_that_it_derives(bundle: Bundle, tmp_path) -> None:  # type: ignore[no-untyped-def]
    save(bundle, tmp_path / "bundle")
    assert load(tmp_path / "bundle").manifest.derives
