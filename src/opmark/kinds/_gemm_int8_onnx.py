"""ONNX's spelling of eight-bit matrix products: the same few operands, in another order in every operator."""

from typing import Any

from opmark.core.call import OnnxNode, Operand
from opmark.core.tensor import TensorSpec
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, qualified, weight
from opmark.kinds._onnx.quantised import EIGHT_BITS, is_per_channel, quantisation, weight_quantisation, zero_point

# Where each operator has its operands; `a` and `b` are the sides, `y` the result.
_PLACES = {
    "matmul-integer": ("a", "b", "a_zero", "b_zero"),
    "integer-to-float": ("a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias"),
    "dynamic-quantize": ("a", "b", "b_scale", "b_zero", "bias"),
    "qlinear": ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"),
    "qgemm": ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "bias", "y_scale", "y_zero"),
}
_NAMES = {
    "matmul-integer": "MatMulInteger",
    "integer-to-float": f"{MICROSOFT}:MatMulIntegerToFloat",
    "dynamic-quantize": f"{MICROSOFT}:DynamicQuantizeMatMul",
    "qlinear": "QLinearMatMul",
    "qgemm": f"{MICROSOFT}:QGemm",
}
_OPERATIONS = {name: op for op, name in _NAMES.items()}
NAMES = frozenset(_OPERATIONS)
# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(_NAMES)


def read(node: OnnxNode) -> dict[str, Any] | None:
    """The fields of a `GemmInt8`, or None where something is not as in any linear layer."""
    op = _OPERATIONS[qualified(node)]
    places = {name: index for index, name in enumerate(_PLACES[op])}
    operands = {name: present(node, index) for name, index in places.items()}
    a, b = operands["a"], operands["b"]
    if a is None or b is None or min(len(a.spec.shape), len(b.spec.shape)) < 2 or b.spec.dtype not in EIGHT_BITS:
        return None
    trans_a, trans_b = bool(node.attributes.get("transA", 0)), bool(node.attributes.get("transB", 0))
    m, k = reversed(a.spec.shape[-2:]) if trans_a else a.spec.shape[-2:]
    n = b.spec.shape[-2] if trans_b else b.spec.shape[-1]
    return {
        "op": op,
        "m": m,
        "k": k,
        "n": n,
        "batch_a": a.spec.shape[:-2],
        "batch_b": b.spec.shape[:-2],
        "bias": operands.get("bias") is not None,
        "trans_a": trans_a,
        "trans_b": trans_b,
        "weight": b.constant,
        "per_channel": "b_scale" in places and n > 1 and is_per_channel(node, places["b_scale"]),
        "float_result": op == "qgemm" and operands["y_scale"] is None,
        "weight_dtype": b.spec.dtype,
        "dtype": "uint8" if op == "dynamic-quantize" else a.spec.dtype,
    }


def write(
    op: str,
    left: Operand,
    right: Operand,
    output: TensorSpec,
    *,
    n: int,
    bias: bool,
    per_channel: bool,
    trans: tuple[bool, bool],
) -> OnnxNode:
    """The node of a `GemmInt8`."""
    operands: dict[str, Operand | None] = {"a": left, "b": right}
    operands["b_scale"], operands["b_zero"] = weight_quantisation(
        n, right.spec.dtype, per_channel=per_channel and n > 1
    )
    if op == "integer-to-float":
        # What the left side was quantised with is computed as the network runs.
        operands["a_scale"], operands["a_zero"] = data((), "float32"), data((), left.spec.dtype)
    elif op != "dynamic-quantize":
        operands["a_scale"], operands["a_zero"] = quantisation(left.spec.dtype)
    if op == "matmul-integer":
        operands["b_zero"] = zero_point(right.spec.dtype)
    if output.dtype in EIGHT_BITS:
        operands["y_scale"], operands["y_zero"] = quantisation(output.dtype)
    if bias:
        operands["bias"] = weight((n,), "int32" if op == "qgemm" else "float32")
    attributes = {"transA": int(trans[0]), "transB": int(trans[1])} if op == "qgemm" else {}
    return build(_NAMES[op], [operands.get(name) for name in _PLACES[op]], [output], attributes)
