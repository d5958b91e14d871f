"""ONNX nodes of any spelling land in one family with the parameters that matter, and run again as they were."""

from typing import Any

import pytest
from tests.kinds.single_node import promised, results

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds import KINDS, kind_of, of_onnx

Shape = tuple[int, ...]


def data(*shape: int, dtype: str = "float32") -> Operand:
    return Operand(spec=TensorSpec(shape, dtype))


def weight(*shape: int, dtype: str = "float32") -> Operand:
    return Operand(spec=TensorSpec(shape, dtype), constant=True)


def ints(*values: int) -> Operand:
    return Operand(spec=TensorSpec((len(values),), "int64"), constant=True, value=values)


def scalar(value: float, dtype: str = "float32") -> Operand:
    return Operand(spec=TensorSpec((), dtype), constant=True, value=(value,))


def node(op: str, inputs: list[Operand | None], *outputs: Shape, **more: Any) -> OnnxNode:
    domain, _, op_type = op.rpartition(":")
    settings = {key: more.pop(key) for key in ("opset", "block") if key in more}
    dtype = more.pop("dtype", "float32")
    return OnnxNode(
        op_type=op_type,
        domain=domain,
        inputs=tuple(inputs),
        outputs=tuple(TensorSpec(shape, dtype) for shape in outputs),
        attributes=more,
        **settings,
    )


X = data(1, 8, 10, 10)
CASES: list[tuple[OnnxNode, str, dict[str, Any]]] = [
    (
        node("Conv", [X, weight(16, 8, 3, 3), weight(16)], (1, 16, 10, 10), auto_pad="SAME_UPPER"),
        "conv",
        {"channels_out": 16, "pads": (1, 1, 1, 1), "bias": True, "groups": 1, "block": 0},
    ),
    (
        node("Conv", [X, weight(16, 8, 2, 2)], (1, 16, 5, 5), auto_pad="SAME_LOWER", strides=(2, 2)),
        "conv",
        {"pads": (0, 0, 0, 0), "stride": (2, 2), "bias": False},
    ),
    (
        node("Conv", [data(2, 6, 30), weight(6, 1, 5)], (2, 6, 26), group=6),
        "conv",
        {"size": (30,), "kernel": (5,), "groups": 6},
    ),
    (
        node(
            "com.microsoft:FusedConv",
            [X, weight(8, 8, 1, 1), None, data(1, 8, 10, 10)],
            (1, 8, 10, 10),
            activation="Clip",
            activation_params=(0.0, 6.0),
        ),
        "conv",
        {"activation": "clip", "residual": True, "bias": False},
    ),
    (
        node("ConvTranspose", [X, weight(8, 4, 2, 2)], (1, 4, 20, 20), strides=(2, 2)),
        "conv-transpose",
        {"channels_out": 4, "pads": (0, 0, 0, 0)},
    ),
    (
        node("ConvTranspose", [X, weight(8, 4, 3, 3)], (1, 4, 20, 20), strides=(2, 2), auto_pad="SAME_UPPER"),
        "conv-transpose",
        {"pads": (0, 0, 1, 1), "output_pads": (0, 0)},
    ),
    (
        node("Gemm", [data(3, 5), weight(7, 5), weight(7)], (3, 7), transB=1, alpha=1.0),
        "gemm",
        {"m": 3, "k": 5, "n": 7, "bias": "row", "trans_b": True, "weight": True},
    ),
    (node("Gemm", [data(5, 3), data(5, 7)], (3, 7), transA=1), "gemm", {"m": 3, "bias": "none", "weight": False}),
    (
        node("com.microsoft:FusedGemm", [data(3, 5), weight(5, 7), weight(3, 7)], (3, 7), activation="Relu"),
        "gemm",
        {"activation": "relu", "bias": "matrix"},
    ),
    (
        node("MatMul", [data(2, 1, 4, 5), data(3, 5, 6)], (2, 3, 4, 6)),
        "matmul",
        {"batch_a": (2, 1), "batch_b": (3,), "m": 4, "k": 5, "n": 6, "weight": False},
    ),
    (
        node("com.microsoft:FusedMatMul", [data(2, 4, 5), data(2, 6, 5)], (2, 4, 6), transB=1, alpha=0.5),
        "matmul",
        {"trans_b": True, "scale": True, "batch_b": (2,)},
    ),
    (node("Softmax", [data(4, 9)], (4, 9), axis=-1), "softmax", {"axis": 1, "log": False}),
    (node("LogSoftmax", [data(4, 9)], (4, 9), axis=0), "softmax", {"axis": 0, "log": True}),
    (node("Clip", [X, scalar(0.0), scalar(6.0)], (1, 8, 10, 10)), "elementwise", {"op": "clip", "constant": ()}),
    (
        node("Pow", [data(3, 4), scalar(2.0)], (3, 4)),
        "elementwise",
        {"op": "pow", "exponent": 2.0, "shapes": ((3, 4), ()), "constant": (1,)},
    ),
    (
        node("Where", [data(4, 4, dtype="bool"), data(2, 4, 4), scalar(0.0)], (2, 4, 4)),
        "elementwise",
        {"op": "where", "shapes": ((4, 4), (2, 4, 4), ()), "constant": (2,), "dtype": "float32"},
    ),
    (
        node("Less", [data(3, dtype="int64"), data(3, dtype="int64")], (3,), dtype="bool"),
        "elementwise",
        {"op": "less", "dtype": "int64"},
    ),
    (node("IsNaN", [data(3, 4)], (3, 4), dtype="bool"), "elementwise", {"op": "isnan"}),
    (node("Sum", [data(3), data(3), data(3)], (3,)), "elementwise", {"op": "sum", "shapes": ((3,), (3,), (3,))}),
    (node("Gelu", [data(3)], (3,), approximate="tanh"), "elementwise", {"op": "gelu-tanh"}),
    (node("com.microsoft:FastGelu", [data(2, 3), weight(3)], (2, 3)), "elementwise", {"op": "fast-gelu"}),
    (node("com.microsoft:QuickGelu", [data(2, 3)], (2, 3), alpha=1.702), "elementwise", {"op": "quick-gelu"}),
    (node("LRN", [X], (1, 8, 10, 10), size=5), "norm", {"op": "local-response", "window": 5}),
    (
        node("LayerNormalization", [data(2, 3, 8), weight(8), weight(8)], (2, 3, 8), axis=-1),
        "norm",
        {"op": "layer", "axis": 2, "shift": True},
    ),
    (
        node("com.microsoft:SkipLayerNormalization", [data(2, 3, 8), data(2, 3, 8), weight(8), weight(8)], (2, 3, 8)),
        "norm",
        {"op": "skip-layer", "sum_output": False, "input_bias": False},
    ),
    (
        node("BatchNormalization", [X, *[weight(8)] * 4], (1, 8, 10, 10)),
        "norm",
        {"op": "batch", "shape": (1, 8, 10, 10)},
    ),
    (node("InstanceNormalization", [X, weight(8), weight(8)], (1, 8, 10, 10)), "norm", {"op": "instance"}),
    (
        node("ReduceMean", [X, ints(-1, -2)], (1, 8, 1, 1)),
        "reduce",
        {"op": "mean", "axes": (2, 3), "keep": True},
    ),
    (
        node("ArgMax", [data(3, 9)], (3,), dtype="int64", axis=-1, keepdims=0),
        "reduce",
        {"op": "argmax", "axes": (1,), "keep": False},
    ),
    (node("CumSum", [data(3, 9), scalar(1, "int64")], (3, 9)), "reduce", {"op": "cumsum", "axes": (1,)}),
    (
        node("MaxPool", [X], (1, 8, 5, 5), kernel_shape=(3, 3), strides=(2, 2), pads=(0, 0, 1, 1)),
        "pool",
        {"op": "max", "pads": (0, 0, 1, 1), "indices": False},
    ),
    (
        node("AveragePool", [X], (1, 8, 5, 5), kernel_shape=(3, 3), strides=(2, 2), ceil_mode=1),
        "pool",
        {"op": "average", "ceil": True},
    ),
    (node("GlobalAveragePool", [X], (1, 8, 1, 1)), "pool", {"op": "global-average", "kernel": (10, 10)}),
    (
        node("Transpose", [data(2, 3, 4)], (4, 3, 2)),
        "movement",
        {"op": "transpose", "arguments": (2, 1, 0)},
    ),
    (
        node("Concat", [weight(1, 1, 8), data(1, 5, 8)], (1, 6, 8), axis=-2),
        "movement",
        {"op": "concat", "arguments": (1,), "constant": (0,)},
    ),
    (node("Split", [data(4, 6), ints(2, 4)], (4, 2), (4, 4), axis=1), "movement", {"arguments": (1, 2, 4)}),
    (
        node("Slice", [data(4, 6), ints(-3), ints(2**62), ints(1), ints(1)], (4, 3)),
        "movement",
        {"op": "slice", "arguments": (0, 3, 4, 6, 1, 1)},
    ),
    (
        node("Slice", [data(6), ints(-1), ints(-(2**62)), ints(0), ints(-2)], (3,)),
        "movement",
        {"arguments": (5, -1, -2)},
    ),
    (
        node("Pad", [data(2, 3), ints(1, 2), None, ints(-1)], (2, 6)),
        "movement",
        {"op": "pad", "arguments": (0, 1, 0, 2), "mode": "constant"},
    ),
    (node("Expand", [data(3, 1), ints(2, 3, 4)], (2, 3, 4)), "movement", {"arguments": (2, 3, 4)}),
    (node("Tile", [data(2, 3), ints(1, 4)], (2, 12)), "movement", {"op": "tile", "arguments": (1, 4)}),
    (node("Cast", [data(3)], (3,), to=7, dtype="int64"), "movement", {"op": "cast", "to": "int64"}),
    (node("Reshape", [data(2, 6), ints(-1, 3)], (4, 3)), "movement", {"op": "reshape", "arguments": (4, 3)}),
    (node("Squeeze", [data(1, 3, 1), ints(0, -1)], (3,)), "movement", {"op": "squeeze", "arguments": (0, 2)}),
    (node("Unsqueeze", [data(3), ints(0, -1)], (1, 3, 1)), "movement", {"arguments": (0, 2)}),
    (
        node("Gather", [weight(100, 16), data(1, 7, dtype="int64")], (1, 7, 16)),
        "gather",
        {"op": "gather", "table": True, "indices": (1, 7), "single": None},
    ),
    (node("Gather", [data(1, 7, 16), scalar(-1, "int64")], (1, 16), axis=1), "gather", {"single": 6, "axis": 1}),
    (
        node("GatherND", [data(5, 6, 7), data(3, 2, dtype="int64")], (3, 7)),
        "gather",
        {"op": "gather-nd", "indices": (3, 2)},
    ),
    (
        node("Resize", [data(1, 3, 8, 8), None, ints(1, 1, 2, 2)], (1, 3, 16, 16), mode="linear"),
        "resize",
        {"output": (1, 3, 16, 16), "coordinates": "half_pixel"},
    ),
    (
        node("Resize", [data(1, 5, 5, 8), None, None, ints(1, 9, 9, 8)], (1, 9, 9, 8), mode="linear"),
        "resize",
        {"shape": (1, 8, 5, 5), "output": (1, 8, 9, 9), "mode": "linear-nhwc"},
    ),
    (
        node(
            "com.microsoft:MultiHeadAttention",
            [data(2, 5, 16), data(2, 9, 16), data(2, 9, 16)],
            (2, 5, 16),
            num_heads=4,
        ),
        "attention",
        {"heads": 4, "query_length": 5, "key_length": 9, "head_size": 4, "variant": "multi-head"},
    ),
    (
        node(
            "com.microsoft:Attention",
            [data(2, 5, 16), weight(16, 48), weight(48)],
            (2, 5, 16),
            num_heads=4,
            unidirectional=1,
        ),
        "attention",
        {"variant": "packed", "hidden": 16, "causal": True, "bias": True, "head_size": 4},
    ),
    (
        node("Attention", [data(2, 4, 5, 8), data(2, 2, 9, 8), data(2, 2, 9, 8)], (2, 4, 5, 8), opset=23),
        "attention",
        {"heads": 4, "kv_heads": 2, "variant": "native", "flat": False},
    ),
    (
        node("LSTM", [data(7, 2, 5), weight(2, 12, 5), weight(2, 12, 3), weight(2, 24)], (7, 2, 2, 3), hidden_size=3,
             direction="bidirectional"),
        "recurrent",
        {"cell": "lstm", "length": 7, "hidden": 3, "directions": 2, "outputs": (0,), "initial": False},
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
    assert again.inputs[0] is not None
    assert given.inputs[0] is not None
    assert again.inputs[0].spec == given.inputs[0].spec
    assert promised(again) == promised(given)
    assert results(again) == promised(given)
    assert of_onnx(again)[0] == kernel


OLD = [
    (node("Softmax", [data(2, 3, 4)], (2, 3, 4), axis=1, opset=9), {"shape": (2, 12), "axis": 1}),
    (node("Softmax", [data(1, 9)], (1, 9), opset=9), {"shape": (1, 9), "axis": 1}),
    (node("ReduceMean", [X], (1, 8), axes=(2, 3), keepdims=0, opset=11), {"axes": (2, 3), "keep": False}),
    (node("ReduceSum", [X], (1, 1, 1, 1), opset=11), {"axes": (0, 1, 2, 3)}),
    (node("Squeeze", [data(1, 3, 1)], (3,), opset=11), {"arguments": (0, 2)}),
    (node("Pad", [data(2, 3)], (2, 6), pads=(0, 1, 0, 2), opset=10), {"arguments": (0, 1, 0, 2)}),
    (
        node("Slice", [data(4, 6)], (4, 3), starts=(1,), ends=(4,), axes=(1,), opset=9),
        {"arguments": (0, 1, 4, 4, 1, 1)},
    ),
    (node("Split", [data(4, 6)], (4, 3), (4, 3), axis=1, opset=9), {"arguments": (1, 3, 3)}),
    (node("Dropout", [data(4)], (4,), opset=9), {"op": "identity"}),
    (
        node("Upsample", [X, weight(4)], (1, 8, 20, 20), mode="nearest", opset=9),
        {"coordinates": "asymmetric", "rounding": "floor"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), OLD, ids=[case[0].op_type + str(n) for n, case in enumerate(OLD)])
def test_older_operator_sets_mean_the_same(given: OnnxNode, expected: dict[str, Any]) -> None:
    kernel, _ = of_onnx(given)
    assert {name: kernel.params[name] for name in expected} == expected
    family = kind_of(kernel)
    again = family.to_onnx(family.parse(kernel))
    assert again is not None
    assert of_onnx(again)[0] == kernel


STRANGERS = [
    node("com.example:Mystery", [data(10), data(6)], (4,)),
    node("BatchNormalization", [X, *[weight(8)] * 4], (1, 8, 10, 10), (8,), (8,), training_mode=1),
    node("ScatterND", [data(8), data(3, 1, dtype="int64"), data(3)], (8,), reduction="add"),
    node("NonZero", [data(8)], (1, 8), dtype="int64"),
]


@pytest.mark.parametrize("given", STRANGERS, ids=lambda item: item.op_type)
def test_what_no_family_takes_is_counted_in_bytes(given: OnnxNode) -> None:
    kernel, work = of_onnx(given)
    assert kernel.kind == "bytes-moved"
    assert work.read_bytes == sum(operand.spec.size_bytes for operand in given.inputs if operand is not None)
    assert work.written_bytes == sum(spec.size_bytes for spec in given.outputs if spec is not None)
    family = kind_of(kernel)
    copy = family.to_onnx(family.parse(kernel))
    assert copy is not None
    assert results(copy) == promised(copy)
    assert abs(of_onnx(copy)[1].moved_bytes - work.moved_bytes) <= 16


def test_the_blocked_layout_reads_its_width_from_the_node() -> None:
    given = node(
        "com.microsoft.nchwc:Conv",
        [data(1, 3, 8, 8), weight(16, 3, 3, 3)],
        (1, 16, 6, 6),
        block=16,
        kernel_shape=(3, 3),
    )
    kernel, _ = of_onnx(given)
    conv = KINDS.load("conv")
    assert kernel.params["block"] == 16
    assert conv.features(conv.parse(kernel))["plain_input"] == 1
    again = conv.to_onnx(conv.parse(kernel))
    assert again is not None
    assert (again.domain, again.block) == ("com.microsoft.nchwc", 16)


WORKS = [
    # 64 filters of 7 × 7 × 3 at 112 × 112 places, two operations each, and one for the bias.
    (
        node(
            "Conv",
            [data(1, 3, 224, 224), weight(64, 3, 7, 7), weight(64)],
            (1, 64, 112, 112),
            strides=(2, 2),
            pads=(3,) * 4,
        ),
        Work(
            flops=112 * 112 * 64 * (2 * 147 + 1),
            read_bytes=4 * (3 * 224 * 224 + 64 * 147 + 64),
            written_bytes=4 * 64 * 112 * 112,
            weight_bytes=4 * (64 * 147 + 64),
        ),
    ),
    (
        node("Conv", [X, weight(8, 1, 3, 3)], (1, 8, 8, 8), group=8),
        Work(flops=8 * 64 * 18, read_bytes=4 * (800 + 72), written_bytes=4 * 512, weight_bytes=4 * 72),
    ),
    (
        node("MatMul", [data(2, 3, 4, 5), data(2, 3, 5, 6)], (2, 3, 4, 6)),
        Work(flops=2 * 6 * 4 * 5 * 6, read_bytes=4 * 6 * (20 + 30), written_bytes=4 * 6 * 24),
    ),
    (
        node("Gemm", [data(3, 5), weight(7, 5), weight(7)], (3, 7), transB=1),
        Work(flops=21 * 11, read_bytes=4 * (15 + 35 + 7), written_bytes=84, weight_bytes=4 * 42),
    ),
    (
        node("Add", [data(2, 3, 4), weight(4)], (2, 3, 4)),
        Work(flops=24, read_bytes=4 * 28, written_bytes=96, weight_bytes=16),
    ),
    (
        node("MaxPool", [X], (1, 8, 5, 5), kernel_shape=(2, 2), strides=(2, 2)),
        Work(flops=800, read_bytes=3200, written_bytes=800),
    ),
    (node("Reshape", [data(2, 6), ints(12)], (12,)), Work(flops=0, read_bytes=0, written_bytes=0)),
    (
        node("Gather", [weight(100, 16), data(7, dtype="int64")], (7, 16)),
        Work(flops=0, read_bytes=4 * 112 + 56, written_bytes=4 * 112, weight_bytes=4 * 112),
    ),
    (
        node("Slice", [data(4, 6), ints(0), ints(2), ints(0), ints(1)], (2, 6)),
        Work(flops=0, read_bytes=48, written_bytes=48),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "work"), WORKS, ids=[f"{n}-{case[0].op_type}" for n, case in enumerate(WORKS)])
def test_work_is_what_a_person_counts(given: OnnxNode, work: Work) -> None:
    assert of_onnx(given)[1] == work
