"""The table of kernels and the sum of a network."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.kinds import work_of
from opmark.predictors.inputs.graphs import footprint_bytes
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.network import replaced
from opmark.predictors.model.training import network_sums, train_on

UNKNOWN = law.kernels("pool", 2)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(law.rows(40), law.TARGET, hardware=law.HARDWARE)


def test_a_kernel_costs_the_same_alone_and_among_others(bundle: Bundle) -> None:
    kernels = [*law.kernels("gemm", 45)[38:], *law.kernels("conv", 45)[38:]]
    together = CostModel(bundle).kernels([*kernels, *kernels])
    for row, kernel in enumerate(kernels):
        alone = CostModel(bundle).kernels([kernel])
        assert together.hot_ns[row] == together.hot_ns[row + len(kernels)] == pytest.approx(alone.hot_ns[0], rel=1e-12)
    assert (together.low_ns < together.hot_ns).all()
    assert (together.hot_ns < together.high_ns).all()
    assert CostModel(bundle).kernels([]).hot_ns.shape == (0,)


def test_matrix_work_waits_before_each_call(bundle: Bundle) -> None:
    chosen = [*law.kernels("gemm", 3), law.kernels("softmax", 1)[0]]
    one = law.graph("net", chosen, weight_bytes=1 << 20, free=2)
    constants = replace(bundle.constants, matrix_gap_ns=14_000.0)
    waiting = Bundle(manifest=replace(bundle.manifest, constants=constants), kinds=bundle.kinds)
    before, after = (CostModel(each).network(one) for each in (bundle, waiting))
    assert after.total_ns == pytest.approx(before.total_ns + 3 * 14_000)
    assert after.node_ns - before.node_ns == pytest.approx([14_000] * 3 + [0] * (len(one.nodes) - 3))


def test_python_functions_of_eager_torch_are_spread_over_its_calls(bundle: Bundle) -> None:
    onnx = law.graph("net", law.kernels("gemm", 3), weight_bytes=1 << 20, free=2)
    constants = replace(bundle.constants, python_call_ns=500.0, python_calls_per_node=4.0)
    interpreted = Bundle(manifest=replace(bundle.manifest, constants=constants), kinds=bundle.kinds)
    aten = replace(onnx, language="aten", python_calls=100)
    before = CostModel(bundle).network(aten)
    after = CostModel(interpreted).network(aten)
    assert after.total_ns == pytest.approx(before.total_ns + 100 * 500)
    assert after.node_ns - before.node_ns == pytest.approx([100 * 500 / len(aten.nodes)] * len(aten.nodes))
    uncounted = CostModel(interpreted).network(replace(aten, python_calls=None))
    assert uncounted.total_ns == pytest.approx(before.total_ns + 4 * len(aten.nodes) * 500)
    assert CostModel(interpreted).network(onnx).total_ns == pytest.approx(CostModel(bundle).network(onnx).total_ns)


def test_a_network_is_the_sum_that_the_design_says(bundle: Bundle) -> None:
    chosen = [*law.kernels("gemm", 6), *law.kernels("conv", 6), *law.kernels("gemm", 3)]
    one = law.graph("net", chosen, weight_bytes=40 << 20, free=2)
    model = CostModel(bundle)
    each = model.kernels(chosen)
    share = bundle.constants.rotated_share(footprint_bytes(one) / law.HARDWARE.last_level_cache_bytes)
    found = model.network(one)
    works = [work_of(kernel) for kernel in chosen]
    weights = np.array([work.weight_bytes / work.moved_bytes for work in works])
    cold = share * weights + bundle.constants.activation_share * (1 - weights)
    expected = each.hot_ns + cold * (each.rotated_ns - each.hot_ns) + bundle.constants.gap_ns
    assert 0.1 < share < 1.5
    # two views of activations and one of the weights are calls too
    views = [bundle.constants.gap_ns] * 3
    assert found.node_ns == pytest.approx([*expected, *views])
    assert found.total_ns == pytest.approx(expected.sum() + sum(views))
    assert found.low_ns < found.total_ns < found.high_ns
    assert found.coverage == 0.9
    assert found.bytes_moved_share == 0
    assert sum(row.count for row in found.rows) == 15
    assert len(found.rows) == 12
    assert [row.total_ns for row in found.rows] == sorted((row.total_ns for row in found.rows), reverse=True)
    assert sum(row.total_ns for row in found.rows) == pytest.approx(found.total_ns)
    again = CostModel(bundle).network(one)
    assert (again.low_ns, again.high_ns) == (found.low_ns, found.high_ns)


def test_constants_are_fitted_to_the_sum_that_predicts(bundle: Bundle) -> None:
    one = law.graph("net", law.kernels("gemm", 6), weight_bytes=40 << 20, free=2)
    constants = replace(
        bundle.constants,
        kernel_scale=1.25,
        activation_share=0.4,
        gap_ns=3_000.0,
        matrix_gap_ns=5_000.0,
        ns_per_fault=200.0,
        faults_per_byte=1e-4,
    )
    model = CostModel(Bundle(manifest=replace(bundle.manifest, constants=constants), kinds=bundle.kinds))
    (fitted,) = network_sums(model, [law.network(one, share=0.5)], {one.id: one})
    predicted = model.network(one)
    assert fitted.total_ns(constants) == pytest.approx(predicted.total_ns)
    unscaled = fitted.total_ns(replace(constants, kernel_scale=1.0))
    kernels_ns = fitted.total_ns(replace(constants, gap_ns=0.0, matrix_gap_ns=0.0, ns_per_fault=0.0))
    assert predicted.total_ns - unscaled == pytest.approx(kernels_ns * (1 - 1 / 1.25))


def test_errors_of_many_groups_average_out(bundle: Bundle) -> None:
    def width(count: int) -> float:
        found = CostModel(bundle).network(law.graph("net", law.kernels("gemm", count)))
        return found.high_ns / found.low_ns

    assert width(35) < width(1)


def test_an_unknown_kind_is_an_error_unless_bytes_will_do(bundle: Bundle) -> None:
    one = law.graph("net", [*law.kernels("gemm", 3), *UNKNOWN, *law.kernels("reduce", 1)])
    with pytest.raises(ContentError, match="no predictor for kinds pool, reduce") as raised:
        CostModel(bundle).network(one)
    for kernel in one.nodes:
        assert (str(kernel.kernel) in raised.value.message) is (kernel.kernel.kind != "gemm")
    assert "--missing bytes-moved" in (raised.value.hint or "")
    found = CostModel(bundle, missing="bytes-moved").network(one)
    unknown = [row for row in found.rows if row.kernel.kind in {"pool", "reduce"}]
    assert len(unknown) == 3
    assert all(row.extrapolated and row.ns > 0 for row in unknown)
    assert found.bytes_moved_share == pytest.approx(sum(row.total_ns for row in unknown) / found.total_ns)


def test_other_features_than_trained_on_are_refused(bundle: Bundle) -> None:
    predictor = bundle.kinds["gemm"]
    entry = replace(predictor.entry, features=("colour",))
    odd = Bundle(manifest=bundle.manifest, kinds={"gemm": replace(predictor, entry=entry)})
    with pytest.raises(ContentError, match="knows other features"):
        CostModel(odd).kernels(law.kernels("gemm", 1))


def test_an_empty_network_costs_nothing(bundle: Bundle) -> None:
    found = CostModel(bundle).network(law.graph("empty", []))
    assert (found.total_ns, found.low_ns, found.high_ns, found.rows) == (0, 0, 0, ())


def test_a_hundred_thousand_kernels_are_one_table(bundle: Bundle) -> None:
    kernels = law.kernels("gemm", 400) * 250
    found = CostModel(bundle).kernels(kernels)
    assert len(found.hot_ns) == 100_000
    assert np.array_equal(found.hot_ns[:400], found.hot_ns[-400:])


def test_measured_kernels_take_the_place_of_predicted_ones(bundle: Bundle) -> None:
    first, second, third = law.kernels("gemm", 3)
    parts = CostModel(bundle).parts(law.graph("net", [first, second, third]))
    found = replaced(parts, {first: (1000.0, 1500.0), second: (2000.0, float("nan"))})
    assert found.hot_ns.tolist() == [1000.0, 2000.0, parts.hot_ns[2]]
    # a rotated label that was not measured keeps its ratio to the hot one
    ratio = parts.rotated_ns[1] / parts.hot_ns[1]
    assert found.rotated_ns == pytest.approx([1500.0, 2000.0 * ratio, parts.rotated_ns[2]])
