"""Eight-bit kernels: read as ONNX Runtime writes them, built and run again, drawn where they exist."""

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.kinds.single_node import promised, results

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.kind import Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds import GENERIC, KINDS, kind_of, of_onnx
from opmark.kinds._onnx.nodes import build, constant, data, weight

INT8 = [name for name in KINDS.names() if "int8" in KINDS.load(name).dtypes and "onnx" in KINDS.load(name).languages]
MICROSOFT = "com.microsoft"
S = constant((0.02,), "float32", ())
Z = constant((128,), "uint8", ())
ZS = constant((0,), "int8", ())
Q, QS = (S, Z), (S, ZS)


def x(*shape: int, dtype: str = "uint8") -> Operand:
    return data(shape, dtype)


def w(*shape: int, dtype: str = "int8") -> Operand:
    return weight(shape, dtype)


def node(name: str, inputs: list[Operand | None], *shape: int, dtype: str = "uint8", **attributes: Any) -> OnnxNode:
    qualified = f"{MICROSOFT}:{name}" if name in MINE else name
    return build(qualified, inputs, [TensorSpec(shape, dtype)], attributes)


MINE = {
    "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearWhere", "QLinearConcat",
    "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool", "NhwcMaxPool", "QGemm",
    "MatMulIntegerToFloat", "DynamicQuantizeMatMul",
}  # fmt: skip
FLOAT = {"dtype": "float32"}
COLUMNS = (weight((6,), "float32"), weight((6,), "int8", limit=1))

CASES = [
    (node("QuantizeLinear", [x(2, 3, **FLOAT), *Q], 2, 3), "quantize", {"op": "quantize", "axis": None}),
    (
        node("QuantizeLinear", [x(2, 3, 5, **FLOAT), weight((3,), "float32"), w(3, dtype="uint8")], 2, 3, 5, axis=1),
        "quantize",
        {"axis": 1, "dtype": "uint8", "constant": False},
    ),
    (node("DequantizeLinear", [w(7), *QS], 7, **FLOAT), "quantize", {"op": "dequantize", "constant": True}),
    (
        node("DequantizeLinear", [w(7, dtype="int32"), S, constant((0,), "int32", ())], 7, **FLOAT),
        "quantize",
        {"dtype": "int32"},
    ),
    (
        build(
            "DynamicQuantizeLinear",
            [x(2, 3, **FLOAT)],
            [TensorSpec((2, 3), "uint8"), TensorSpec(()), TensorSpec((), "uint8")],
        ),
        "quantize",
        {"op": "dynamic", "dtype": "uint8"},
    ),
    (
        node("MatMulInteger", [x(1, 4, 5), w(5, 6), Z, ZS], 1, 4, 6, dtype="int32"),
        "gemm-int8",
        {"op": "matmul-integer", "batch_a": (1,), "weight_dtype": "int8"},
    ),
    (
        node(
            "MatMulIntegerToFloat",
            [x(1, 4, 5), w(5, 6, dtype="uint8"), x(**FLOAT), S, x(), Z, weight((6,), "float32")],
            1, 4, 6, **FLOAT,
        ),
        "gemm-int8",
        {"op": "integer-to-float", "bias": True, "m": 4, "k": 5, "n": 6},
    ),
    (
        node("DynamicQuantizeMatMul", [x(4, 5, **FLOAT), w(5, 6), *COLUMNS], 4, 6, **FLOAT),
        "gemm-int8",
        {"op": "dynamic-quantize", "bias": False, "per_channel": True},
    ),
    (
        node("QLinearMatMul", [x(2, 3, 4, 5), *Q, x(2, 3, 5, 6), *Q, *Q], 2, 3, 4, 6),
        "gemm-int8",
        {"op": "qlinear", "weight": False, "batch_b": (2, 3)},
    ),
    (
        node("QGemm", [x(4, 5), *Q, w(6, 5), *QS, w(6, dtype="int32"), *Q], 4, 6, transA=0, transB=1),
        "gemm-int8",
        {"op": "qgemm", "trans_b": True, "bias": True, "float_result": False},
    ),
    (
        node("QGemm", [x(4, 5), *Q, w(5, 6), *QS], 4, 6, **FLOAT, transA=0, transB=0),
        "gemm-int8",
        {"op": "qgemm", "float_result": True},
    ),
    (
        build(
            f"{MICROSOFT}:QLinearConv",
            [x(1, 9, 9, 4), *Q, w(6, 4, 3, 3), *COLUMNS, *Q, w(6, dtype="int32")],
            [TensorSpec((1, 5, 5, 6), "uint8")],
            {"strides": (2, 2), "pads": (1, 1, 1, 1), "channels_last": 1},
        ),
        "conv-int8",
        {"op": "qlinear", "channels_last": True, "channels_in": 4, "size": (9, 9), "bias": True, "per_channel": True},
    ),
    (
        node("QLinearConv", [x(1, 6, 9, 9), *Q, w(6, 1, 3, 3), *QS, *Q], 1, 6, 9, 9, group=6, auto_pad="SAME_UPPER"),
        "conv-int8",
        {"channels_last": False, "groups": 6, "bias": False, "pads": (1, 1, 1, 1)},
    ),
    (
        node("ConvInteger", [x(1, 4, 9, 9), w(6, 4, 3, 3, dtype="uint8"), x(), Z], 1, 6, 7, 7, dtype="int32"),
        "conv-int8",
        {"op": "integer", "weight_dtype": "uint8"},
    ),
    (node("QLinearAdd", [x(2, 3), *Q, x(2, 3), *Q, *Q], 2, 3), "elementwise", {"op": "qlinear-add", "constant": ()}),
    (
        node("QLinearMul", [w(3, dtype="uint8"), *Q, x(2, 3), *Q, *Q], 2, 3),
        "elementwise",
        {"op": "qlinear-mul", "shapes": ((3,), (2, 3)), "constant": (0,)},
    ),
    (node("QLinearSigmoid", [x(2, 3), *Q, *Q], 2, 3), "elementwise", {"op": "qlinear-sigmoid"}),
    (node("QLinearLeakyRelu", [x(2, 3), *Q, *Q], 2, 3, alpha=0.1), "elementwise", {"op": "qlinear-leaky-relu"}),
    (
        node("QLinearWhere", [x(2, 3, dtype="bool"), w(dtype="uint8"), *Q, x(2, 3), *Q, *Q], 2, 3),
        "elementwise",
        {"op": "qlinear-where", "shapes": ((2, 3), (), (2, 3)), "constant": (1,), "dtype": "uint8"},
    ),
    (
        node("QLinearConcat", [*Q, x(1, 2, 3), *Q, x(1, 4, 3), *Q], 1, 6, 3, axis=-2),
        "movement",
        {"op": "qlinear-concat", "shapes": ((1, 2, 3), (1, 4, 3)), "arguments": (1,)},
    ),
    (node("QLinearSoftmax", [x(2, 3), *Q, *Q], 2, 3, axis=-1, opset=13), "softmax", {"axis": 1, "dtype": "uint8"}),
    (
        node("QLinearSoftmax", [x(1, 3, 1, 1), *Q, *Q], 1, 3, 1, 1, axis=1, opset=9),
        "softmax",
        {"shape": (1, 3), "axis": 1},
    ),
    (
        node("QLinearGlobalAveragePool", [x(1, 7, 7, 4), *Q, *Q], 1, 1, 1, 4, channels_last=1),
        "pool",
        {"op": "qlinear-global-average-nhwc", "channels": 4, "size": (7, 7)},
    ),
    (
        node("QLinearAveragePool", [x(1, 4, 8, 8), *Q, *Q], 1, 4, 4, 4, kernel_shape=(2, 2), strides=(2, 2)),
        "pool",
        {"op": "qlinear-average", "channels": 4, "kernel": (2, 2)},
    ),
    (
        node("NhwcMaxPool", [x(1, 8, 8, 4)], 1, 4, 4, 4, kernel_shape=(2, 2), strides=(2, 2)),
        "pool",
        {"op": "max-nhwc", "channels": 4, "size": (8, 8)},
    ),
    (node("MaxPool", [x(1, 4, 8, 8)], 1, 4, 7, 7, kernel_shape=(2, 2)), "pool", {"op": "max", "dtype": "uint8"}),
    (
        node("Gather", [w(9, 4), x(2, dtype="int64")], 2, 4, dtype="int8", axis=0),
        "gather",
        {"table": True, "dtype": "int8"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "kind", "expected"), CASES, ids=[f"{n}-{case[0].op_type}" for n, case in enumerate(CASES)]
)
def test_a_node_is_read_and_runs_again(given: OnnxNode, kind: str, expected: dict[str, Any]) -> None:
    kernel, _ = of_onnx(given)
    assert kernel.kind == kind
    assert {name: kernel.params[name] for name in expected} == expected
    family = kind_of(kernel)
    again = family.to_onnx(family.parse(kernel))
    assert again is not None
    assert (again.op_type, again.domain) == (given.op_type, given.domain)
    assert results(given) == promised(given)
    assert results(again) == promised(again)
    assert of_onnx(again)[0] == kernel


WORKS = [
    # Six columns of sums over five, each scaled, and a bias; the left side quantised first.
    (
        node("DynamicQuantizeMatMul", [x(4, 5, **FLOAT), w(5, 6), *QS, weight((6,), "float32")], 4, 6, **FLOAT),
        Work(flops=24 * 12 + 6 * 20, read_bytes=80 + 30 + 24, written_bytes=96, weight_bytes=54),
    ),
    (
        node("QLinearMatMul", [x(2, 4, 5), *Q, x(2, 5, 6), *Q, *Q], 2, 4, 6),
        Work(flops=48 * 13, read_bytes=40 + 60, written_bytes=48),
    ),
    (
        node("ConvInteger", [x(1, 4, 9, 9), w(6, 4, 3, 3), x(), ZS], 1, 6, 7, 7, dtype="int32"),
        Work(flops=294 * 72, read_bytes=324 + 216, written_bytes=4 * 294, weight_bytes=216),
    ),
    (
        build(
            f"{MICROSOFT}:QLinearConv",
            [x(1, 9, 9, 4), *Q, w(6, 4, 3, 3), *QS, *Q, w(6, dtype="int32")],
            [TensorSpec((1, 7, 7, 6), "uint8")],
            {"channels_last": 1},
        ),
        Work(flops=294 * 76, read_bytes=324 + 216 + 24, written_bytes=294, weight_bytes=240),
    ),
    (
        node("DequantizeLinear", [x(2, 3), *Q], 2, 3, **FLOAT),
        Work(flops=12, read_bytes=6, written_bytes=24),
    ),
    (
        node("QLinearAdd", [x(2, 3), *Q, w(3, dtype="uint8"), *Q, *Q], 2, 3),
        Work(flops=30, read_bytes=9, written_bytes=6, weight_bytes=3),
    ),
]


@pytest.mark.parametrize(("given", "work"), WORKS, ids=[f"{n}-{case[0].op_type}" for n, case in enumerate(WORKS)])
def test_work_is_what_a_person_counts(given: OnnxNode, work: Work) -> None:
    assert of_onnx(given)[1] == work


@pytest.mark.parametrize(
    "given",
    [
        node("DequantizeLinear", [x(4, 8), weight((4, 2), "float32"), None], 4, 8, **FLOAT, axis=1, block_size=4),
        node("MatMulInteger", [x(5), w(5, 6)], 6, dtype="int32"),
        node("ConvInteger", [x(1, 4, 9, 9), x(6, 4, 3, 3)], 1, 6, 7, 7, dtype="int32"),
    ],
    ids=lambda item: item.op_type,
)
def test_what_no_family_takes_is_counted_in_bytes(given: OnnxNode) -> None:
    assert of_onnx(given)[0].kind == GENERIC


def drawn(kind: Kind[Any], setting: Setting, count: int) -> list[Any]:
    source = random.Random(kind.name)
    points = ({name: axis.at(source.random()) for name, axis in kind.space.items()} for _ in range(count))
    return [p for p in (kind.draw(values, setting) for values in points) if p is not None]


@pytest.mark.parametrize("name", INT8)
def test_eight_bits_are_drawn_and_run(name: str) -> None:
    kind = KINDS.load(name)
    ran = 0
    for p in drawn(kind, Setting(language="onnx", dtype="int8"), 120):
        assert p.dtype in {"int8", "uint8"}
        small = kind.vary(p, 0.25, 0.3)
        node, work = kind.to_onnx(small), kind.work(small)
        if node is None or work.flops > 5_000_000 or work.moved_bytes > 1_000_000:
            continue
        assert results(node) == promised(node), small
        assert of_onnx(node)[0] == kind.kernel(small)
        ran += 1
    assert ran >= 10


@pytest.mark.parametrize("name", INT8)
def test_nothing_in_eight_bits_is_drawn_for_torch(name: str) -> None:
    kind = KINDS.load(name)
    if "aten" in kind.languages:
        assert all(kind.to_aten(p) is None for p in drawn(kind, Setting(language="aten", dtype="int8"), 100))


def test_a_product_of_activations_keeps_its_sequence_square() -> None:
    kind = KINDS.load("gemm-int8")
    scores = kind.parse(of_onnx(node("QLinearMatMul", [x(2, 8, 5), *Q, x(2, 5, 8), *Q, *Q], 2, 8, 8))[0])
    assert (kind.vary(scores, 2, 0.5).m, kind.vary(scores, 2, 0.5).n, kind.vary(scores, 2, 0.5).k) == (4, 4, 10)
    assert kind.vary(replace(scores, weight=True), 2, 0.5).n == 16
