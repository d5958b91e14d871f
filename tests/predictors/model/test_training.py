"""Training on rows at hand: which rows count, what a bundle says, and constants from training networks only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.datasets import sample
from tests.predictors import law

from opmark.core.errors import ContentError, NothingSelectedError, UnknownNameError
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import FAILED, LOW_QUALITY, Measurement
from opmark.datasets.release.building import build_from
from opmark.kinds import work_of
from opmark.predictors.inputs.tables import tables
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import _first_rows, network_sums, train_on, with_constants_of


def failed(row: Measurement) -> Measurement:
    return Measurement(
        kernel=row.kernel, work=work_of(row.kernel), target=row.target, status=FAILED, reason="the worker crashed"
    )


def test_unusable_rows_are_left_out_and_the_settled_repeat_counts() -> None:
    first, second, third = law.rows(3, ("gemm",))
    noisy = replace(first, status=LOW_QUALITY, latency_hot_ns=1.0)
    for order in ((noisy, first), (first, noisy)):
        table = tables([*order, second, failed(third)], law.HARDWARE)["gemm"]
        found = dict(zip(table.inputs.kernels, table.labels.hot_ns, strict=True))
        assert found == {first.kernel: first.latency_hot_ns, second.kernel: second.latency_hot_ns}


def test_the_order_of_rows_does_not_matter() -> None:
    rows = law.rows(30, ("gemm",))
    one = train_on(rows, law.TARGET, hardware=law.HARDWARE)
    other = train_on(rows[::-1], law.TARGET, hardware=law.HARDWARE)
    assert {k: v.texts for k, v in one.kinds.items()} == {k: v.texts for k, v in other.kinds.items()}
    assert one.manifest == other.manifest


def test_unseen_kernels_are_predicted_within_a_few_percent() -> None:
    bundle = train_on(law.rows(120), law.TARGET, hardware=law.HARDWARE)
    model = CostModel(bundle)
    for kind in law.KIND_NAMES:
        fresh = [kernel for kernel in law.kernels(kind, 200) if kernel not in law.kernels(kind, 120)]
        found = model.kernels(fresh)
        hot = np.array([law.hot_ns(kernel) for kernel in fresh])
        rotated = np.array([law.rotated_ns(kernel) for kernel in fresh])
        assert np.median(np.abs(found.hot_ns / hot - 1)) < 0.06, kind
        assert np.median(np.abs(found.rotated_ns / rotated - 1)) < 0.08, kind
        covered = ((hot >= found.low_ns) & (hot <= found.high_ns)).mean()
        assert covered > 0.75, kind


def weight_share(kernel: Kernel) -> float:
    return work_of(kernel).weight_bytes / work_of(kernel).moved_bytes


def test_constants_come_from_training_networks_alone() -> None:
    heavy = sorted(law.kernels("gemm", 40), key=weight_share)[-14:]
    hot = [law.graph(f"a{n}", heavy[n : n + 12]) for n in range(3)]
    cold = [law.graph(f"b{n}", heavy[n : n + 12], weight_bytes=200 << 20) for n in range(3)]
    measured = [law.network(one, share=0.0, gap_ns=500) for one in hot]
    measured += [law.network(one, share=1.4, gap_ns=500) for one in cold]
    unseen = law.network(law.graph("u", law.kernels("conv", 5)), share=0, role="held-out", latency_ns=1.0)
    graphs = {one.id: one for one in (*hot, *cold)} | {"u": law.graph("u", law.kernels("conv", 5))}
    rows = law.rows(60, noise=0.001)
    bundle = train_on(rows, law.TARGET, hardware=law.HARDWARE, networks=[*measured, unseen], graphs=graphs)
    assert bundle.constants.networks == ("a0", "a1", "a2", "b0", "b1", "b2")
    without = train_on(rows, law.TARGET, hardware=law.HARDWARE, networks=measured, graphs=graphs)
    assert without.constants == bundle.constants
    model = CostModel(bundle)
    for one, row in zip((*hot, *cold), measured, strict=True):
        assert model.network(one).total_ns == pytest.approx(row.latency_ns, rel=0.12)
    assert bundle.constants.rotated_share(0.01) < 0.2 < 1.0 < bundle.constants.rotated_share(6)


def test_networks_alone_tell_constants_anew(tmp_path: Path) -> None:
    graphs = [law.graph(f"a{n}", law.kernels("gemm", 40)[n : n + 12]) for n in range(5)]
    alone = [law.network(one, share=0.0) for one in graphs]
    measured = [replace(one, latency_ns=1.3 * (one.latency_ns or 0.0)) for one in alone]
    rows = law.rows(60, noise=0.001)
    before = train_on(rows, law.TARGET, hardware=law.HARDWARE)
    careful = replace(before.constants, interval_scale=2.5)
    before = Bundle(manifest=replace(before.manifest, constants=careful), kinds=before.kinds)
    named = {one.id: one for one in graphs}
    release = build_from([sample.contents(rows, measured)], tmp_path)
    after = with_constants_of(before, release, graphs=named)
    assert after.kinds is before.kinds
    assert after.constants.networks == tuple(sorted(one.name for one in graphs))
    assert after.constants.interval_scale == 2.5
    model, unaware = CostModel(after), CostModel(before)
    for one, row in zip(graphs, measured, strict=True):
        assert model.network(one).total_ns == pytest.approx(row.latency_ns, rel=0.1)
        assert unaware.network(one).total_ns < 0.88 * row.latency_ns
    with pytest.raises(NothingSelectedError, match="no training network of"):
        with_constants_of(before, release, graphs={})


def test_a_family_in_both_roles_is_refused() -> None:
    one = law.graph("a", law.kernels("conv", 5))
    both = [law.network(one, share=0), law.network(one, share=0, role="held-out")]
    with pytest.raises(ContentError, match="both training and held-out"):
        train_on(law.rows(20), law.TARGET, networks=both, graphs={one.id: one})


def test_sums_name_graphs_by_id_or_by_name() -> None:
    one = law.graph("a", law.kernels("conv", 5))
    model = CostModel(train_on(law.rows(20, ("conv",)), law.TARGET))
    row = law.network(one, share=0)
    by_id = network_sums(model, [row], {one.id: one})
    assert by_id == network_sums(model, [row], {"a": one})
    assert by_id[0].calls == 5
    assert by_id[0].network_class == "float32"
    assert by_id[0].deviation > 0
    assert network_sums(model, [row], {}) == []


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(NothingSelectedError, match="no usable measurement"):
        train_on([failed(law.rows(1)[0])], law.TARGET)
    with pytest.raises(UnknownNameError, match="no estimator"):
        train_on(law.rows(2), law.TARGET, estimator="oracle")


def test_training_on_the_first_rows_by_key() -> None:
    rows = law.rows(10)
    kept = _first_rows(rows, 4)
    for kind in law.KIND_NAMES:
        keys = sorted(row.kernel.key for row in rows if row.kernel.kind == kind)
        assert [row.kernel.key for row in kept if row.kernel.kind == kind] == keys[:4]
    assert _first_rows(tuple(reversed(rows)), 4) == kept


def test_training_tells_which_kind_is_begun_and_how_many_rows_came_before_and_are_its_own() -> None:
    told: list[tuple[str, float, float]] = []
    train_on(
        law.rows(10, ("gemm", "softmax")),
        law.TARGET,
        hardware=law.HARDWARE,
        begun=lambda *step: told.append(step),
    )
    assert told == [("gemm", 0.0, 0.5), ("softmax", 0.5, 0.5), ("networks", 1.0, 0.0)]
