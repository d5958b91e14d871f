"""Operators without a predictor: refused where they multiply matrices, else named, and doubted by the interval."""

from dataclasses import replace

import pytest
from tests.predictors import law

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import train_on
from opmark.predictors.model.unmodelled import (
    MOST_COPIES,
    MOST_FAR,
    MOST_MATRIX_COPIES,
    MOST_RELATIVES,
    Basis,
    UnmodelledOperator,
    warnings_about,
    widened,
)

COPY = Kernel.of("bytes-moved", {"read_bytes": 1 << 20, "written_bytes": 1 << 20, "dtype": "float32"})


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return train_on(law.rows(40), law.TARGET, hardware=law.HARDWARE)


def network(operator: str) -> Graph:
    found = law.graph("net", [*law.kernels("gemm", 2), COPY])
    nodes = (replace(node, origins=(operator,)) if node.kernel == COPY else node for node in found.nodes)
    return replace(found, nodes=tuple(nodes))


def test_matrix_work_without_a_kind_is_refused_by_name(bundle: Bundle) -> None:
    with pytest.raises(ContentError, match=r"no kind describes: aten\.mkldnn_rnn_layer\.default") as raised:
        CostModel(bundle).network(network("aten.mkldnn_rnn_layer.default"))
    assert raised.value.where == "net"
    assert "--missing bytes-moved" in (raised.value.hint or "")


def test_matrix_work_that_is_asked_for_is_doubted(bundle: Bundle) -> None:
    found = CostModel(bundle, missing="bytes-moved").network(network("aten.mkldnn_rnn_layer.default"))
    (one,) = found.unmodelled
    row = next(row for row in found.rows if row.kernel == COPY)
    assert (one.operator, one.calls, one.matrix) == ("aten.mkldnn_rnn_layer.default", 1, True)
    assert one.share == pytest.approx(row.total_ns / found.total_ns) == pytest.approx(found.bytes_moved_share)
    assert found.high_ns > found.total_ns + (MOST_MATRIX_COPIES - 1) * row.total_ns
    assert row.high_ns == pytest.approx(MOST_COPIES * row.ns)


def test_other_work_without_a_kind_is_doubted_less_and_named(bundle: Bundle) -> None:
    found = CostModel(bundle).network(network("aten.sort.default"))
    (one,) = found.unmodelled
    assert not one.matrix
    known = CostModel(bundle).network(law.graph("net", law.kernels("gemm", 2)))
    assert known.unmodelled == ()
    spent = one.share * found.total_ns
    assert found.high_ns - found.total_ns > (MOST_COPIES - 1) * spent
    assert found.low_ns < found.total_ns - 0.5 * spent
    (sentence,) = warnings_about(found.unmodelled)
    assert sentence.startswith("no measurement covers aten.sort.default;")


def test_the_interval_grows_by_the_share_that_nobody_modelled() -> None:
    def one(share: float, at_most: float = MOST_COPIES) -> UnmodelledOperator:
        return UnmodelledOperator(
            operator="aten.sort.default", calls=1, share=share, matrix=at_most == MOST_MATRIX_COPIES, at_most=at_most
        )

    assert widened(90.0, 110.0, 100.0, []) == (90.0, 110.0)
    assert widened(90.0, 110.0, 100.0, [one(0.1)]) == pytest.approx((85.0, 110.0 + 10 * (MOST_COPIES - 1)))
    assert widened(90.0, 110.0, 100.0, [one(0.1, MOST_MATRIX_COPIES)])[1] == pytest.approx(
        110 + 10 * (MOST_MATRIX_COPIES - 1)
    )
    assert widened(20.0, 300.0, 100.0, [one(1.0)])[0] == 0.0
    far = replace(one(0.5, 10.0), basis=Basis.SIZES)
    assert widened(90.0, 110.0, 100.0, [far]) == pytest.approx((45.0, 560.0)), "a relative can also be much slower"


def test_an_operator_that_cannot_matter_gets_no_sentence() -> None:
    def one(share: float) -> UnmodelledOperator:
        return UnmodelledOperator(operator="aten.sort", calls=1, share=share, matrix=False, at_most=11.0)

    assert warnings_about([one(0.0009)]) == ()
    assert len(warnings_about([one(0.0011)])) == 1


def test_a_long_list_of_operators_is_cut() -> None:
    operators = [
        UnmodelledOperator(
            operator=f"aten.op{index}",
            calls=1,
            share=0.1,
            matrix=index < 1,
            at_most=MOST_COPIES if index else MOST_MATRIX_COPIES,
        )
        for index in range(8)
    ]
    matrix, other = warnings_about(operators)
    assert "the matrix work of aten.op0;" in matrix
    assert "aten.op1, aten.op2, aten.op3, aten.op4, aten.op5 and 2 more;" in other
    assert warnings_about([]) == ()


@pytest.mark.parametrize(
    ("changes", "basis", "at_most", "sentence"),
    [
        ({"dtype": "float64"}, Basis.TYPES, MOST_FAR, "in this element type; its time is guessed from other types"),
        ({"op": "erf"}, Basis.OPERATIONS, MOST_RELATIVES, "guessed from other operations of its kind"),
        ({"shapes": ((2**36,),)}, Basis.SIZES, MOST_FAR, "differs from all measured ones by a factor of more than 32"),
    ],
)
def test_what_was_never_measured_is_doubted_though_its_kind_was(
    changes: dict[str, object], basis: Basis, at_most: float, sentence: str
) -> None:
    rows = [row for row in law.rows(60, ("gemm", "elementwise")) if row.kernel.params.get("op") != "erf"]
    unary = [row.kernel for row in rows if len(row.kernel.params.get("shapes", ())) == 1]  # type: ignore[arg-type]
    usual = max(unary, key=law.hot_ns)
    foreign = Kernel.of("elementwise", {**usual.params, **changes})
    model = CostModel(train_on(rows, law.TARGET, hardware=law.HARDWARE))
    assert model.network(law.graph("net", [*law.kernels("gemm", 2), usual])).unmodelled == ()
    found = model.network(law.graph("net", [*law.kernels("gemm", 2), foreign]))
    (one,) = found.unmodelled
    assert (one.basis, one.at_most, one.matrix, found.bytes_moved_share) == (basis, at_most, False, 0)
    assert found.high_ns > found.total_ns * (1 + one.share * (at_most - 1))
    assert found.low_ns < found.total_ns * (1 - one.share * (1 - 1 / at_most))
    row = next(row for row in found.rows if row.kernel == foreign)
    assert (row.low_ns, row.high_ns) == pytest.approx((row.ns / at_most, row.ns * at_most))
    assert sentence in warnings_about(found.unmodelled)[0]
