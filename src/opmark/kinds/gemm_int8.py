"""Matrix products of eight-bit numbers in ONNX Runtime's five forms for linear layers and attention."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec, broadcast_shape
from opmark.core.kernels.work import Work
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, qualified, weight
from opmark.kinds._onnx.quantised import is_per_channel, quantisation, weight_quantisation, zero_point
from opmark.kinds._shared.shapes import EIGHT_BITS, code, scaled, size_bytes

# The operands of each operator in order: `a` and `b` are the two sides, `y` is the result.
_PLACES = {
    "matmul-integer": ("a", "b", "a_zero", "b_zero"),
    "integer-to-float": ("a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias"),
    "dynamic-quantize": ("a", "b", "b_scale", "b_zero", "bias"),
    "qlinear": ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"),
    "qgemm": ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "bias", "y_scale", "y_zero"),
}
_ONNX = {
    "matmul-integer": "MatMulInteger",
    "integer-to-float": f"{MICROSOFT}:MatMulIntegerToFloat",
    "dynamic-quantize": f"{MICROSOFT}:DynamicQuantizeMatMul",
    "qlinear": "QLinearMatMul",
    "qgemm": f"{MICROSOFT}:QGemm",
}
_FROM_ONNX = {name: op for op, name in _ONNX.items()}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(_ONNX)
# Per element of the result: FLOPs to turn a sum of products into eight bits, or into a floating-point number.
_REQUANTISE = 3
_RESCALE = 1
# Per element of a left side that the kernel quantises itself.
_QUANTISE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmInt8:
    """[*batch_a, m, k] times [*batch_b, k, n]; `op` is one of `OPERATIONS`.

    `matmul-integer` gives 32-bit sums; `integer-to-float` scales them; `dynamic-quantize` also quantises its left side,
    which is floating; `qlinear` gives eight bits; `qgemm` too, of two matrices, or floating numbers with
    `float_result`. `dtype` and `weight_dtype` are the types of the two sides, `per_channel` is a scale per column, and
    `weight` marks a constant right side.
    """

    op: str
    m: int
    k: int
    n: int
    batch_a: tuple[int, ...] = ()
    batch_b: tuple[int, ...] = ()
    bias: bool = False
    trans_a: bool = False
    trans_b: bool = False
    weight: bool = True
    per_channel: bool = False
    float_result: bool = False
    weight_dtype: str = "int8"
    dtype: str = "uint8"

    @property
    def left(self) -> TensorSpec:
        """The left side as stored."""
        shape = (self.k, self.m) if self.trans_a else (*self.batch_a, self.m, self.k)
        return TensorSpec(shape, "float32" if self.op == "dynamic-quantize" else self.dtype)

    @property
    def right(self) -> TensorSpec:
        """The right side as stored."""
        return TensorSpec((self.n, self.k) if self.trans_b else (*self.batch_b, self.k, self.n), self.weight_dtype)

    @property
    def output(self) -> TensorSpec:
        """The result."""
        shape = (*broadcast_shape(self.batch_a, self.batch_b), self.m, self.n)
        if self.op == "matmul-integer":
            return TensorSpec(shape, "int32")
        eight = self.op == "qlinear" or (self.op == "qgemm" and not self.float_result)
        return TensorSpec(shape, self.dtype if eight else "float32")


class GemmInt8Kind(Kind[GemmInt8]):
    """Eight-bit matrix product."""

    name = "gemm-int8"
    parameters = GemmInt8
    matrix = True
    most_flops = 6_000_000_000
    most_bytes = 256 * 2**20
    languages = ("onnx",)
    dtypes = frozenset({"int8"})
    categories = ("op", "types")
    onnx_ops = frozenset(_FROM_ONNX)
    space = {
        "op": Choice(
            ("dynamic-quantize", "dynamic-quantize", "integer-to-float", "qgemm", "qgemm", "qlinear", "qlinear",
             "matmul-integer")
        ),
        "role": Choice(("linear", "linear", "linear", "scores", "context")),
        "batch": Choice((1, 1, 1, 1, 2, 4, 8)),
        "heads": Choice((1, 2, 3, 4, 6, 8, 12, 16)),
        "length": Range(1, 2048),
        "k": Range(16, 8192, 8),
        "n": Range(16, 8192, 8),
        "head_size": Choice((32, 64, 64, 64, 80, 96, 128)),
        "trans_b": Choice((False, True)),
        "bias": Choice((True, False)),
        "per_channel": Choice((False, False, False, True)),
    }  # fmt: skip

    def work(self, p: GemmInt8) -> Work:
        per_element = 2 * p.k + p.bias
        if p.op != "matmul-integer":
            per_element += _RESCALE if p.output.dtype == "float32" else _REQUANTISE
        quantised = _QUANTISE * p.left.elements if p.op == "dynamic-quantize" else 0
        # Scales of columns are as constant as the weights they belong to.
        beside = 4 * p.n * (p.bias + p.per_channel)
        right = p.right.size_bytes
        return Work(
            flops=p.output.elements * per_element + quantised,
            read_bytes=p.left.size_bytes + right + beside,
            written_bytes=p.output.size_bytes,
            weight_bytes=beside + (right if p.weight else 0),
        )

    def features(self, p: GemmInt8) -> dict[str, float]:
        shared = math.prod(p.batch_b) == 1
        batch = math.prod(p.output.shape[:-2])
        return {
            "op": code(p.op, OPERATIONS),
            # One of four pairs of signed and unsigned bytes; each has an inner loop of its own.
            "types": 2 * code(p.dtype, EIGHT_BITS) + code(p.weight_dtype, EIGHT_BITS),
            "products": 1 if shared else batch,
            "m": p.m * batch if shared else p.m,
            "k": p.k,
            "n": p.n,
            "trans_a": float(p.trans_a),
            "trans_b": float(p.trans_b),
            "weight": float(p.weight),
            "bias": float(p.bias),
            "per_channel": float(p.per_channel),
            "float_input": float(p.left.dtype == "float32"),
            "item_out_bytes": size_bytes((), p.output.dtype),
        }

    def shape_group(self, p: GemmInt8) -> str:
        return f"{p.op}-{p.batch_b}-{p.m}-{p.k}-{int(p.weight)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> GemmInt8 | None:
        op, length, head_size = values["op"], values["length"], values["head_size"]
        if setting.language != "onnx":
            return None
        dynamic = op in {"dynamic-quantize", "integer-to-float"}
        fields: dict[str, Any] = {"op": op, "weight_dtype": "uint8" if op in _UNSIGNED else "int8"}
        if values["role"] == "linear":
            fields |= {"m": length, "k": values["k"], "n": values["n"]}
            fields["per_channel"] = values["per_channel"] and op != "matmul-integer"
            fields["bias"] = values["bias"] and (dynamic or op == "qgemm")
            if op == "qgemm":
                fields |= {"m": length * values["batch"], "trans_b": values["trans_b"]}
            else:
                fields |= {"batch_a": (values["batch"],)}
        else:
            # Products of two activations, as in attention.
            if op not in {"qlinear", "matmul-integer"}:
                return None
            sizes = (head_size, length) if values["role"] == "scores" else (length, head_size)
            heads = (values["batch"], values["heads"])
            fields |= {"batch_a": heads, "batch_b": heads, "m": length, "k": sizes[0], "n": sizes[1], "weight": False}
            fields["weight_dtype"] = "uint8"
        p = GemmInt8(**fields)
        return self.within_limits(p)

    def vary(self, p: GemmInt8, width: float, extent: float) -> GemmInt8:
        m = p.m if p.m == 1 else scaled(p.m, extent)
        if p.weight:
            return replace(p, m=m, k=scaled(p.k, width), n=scaled(p.n, width))
        # A side as long as the sequence stays so.
        k, n = (m if size == p.m else scaled(size, width) for size in (p.k, p.n))
        return replace(p, m=m, k=k, n=n)

    def from_onnx(self, node: OnnxNode) -> GemmInt8 | None:
        op = _FROM_ONNX[qualified(node)]
        places = {name: index for index, name in enumerate(_PLACES[op])}
        operands = {name: present(node, index) for name, index in places.items()}
        a, b = operands["a"], operands["b"]
        if a is None or b is None or min(len(a.spec.shape), len(b.spec.shape)) < 2 or b.spec.dtype not in EIGHT_BITS:
            return None
        trans_a, trans_b = bool(node.attributes.get("transA", 0)), bool(node.attributes.get("transB", 0))
        m, k = reversed(a.spec.shape[-2:]) if trans_a else a.spec.shape[-2:]
        n = b.spec.shape[-2] if trans_b else b.spec.shape[-1]
        p = GemmInt8(
            op=op,
            m=m,
            k=k,
            n=n,
            batch_a=a.spec.shape[:-2],
            batch_b=b.spec.shape[:-2],
            bias=operands.get("bias") is not None,
            trans_a=trans_a,
            trans_b=trans_b,
            weight=b.constant,
            per_channel="b_scale" in places and n > 1 and is_per_channel(node, places["b_scale"]),
            float_result=op == "qgemm" and operands["y_scale"] is None,
            weight_dtype=b.spec.dtype,
            dtype="uint8" if op == "dynamic-quantize" else a.spec.dtype,
        )
        try:
            return p if node.outputs and node.outputs[0] == p.output else None
        except ContentError:
            return None

    def to_onnx(self, p: GemmInt8) -> OnnxNode | None:
        operands: dict[str, Operand | None] = {"a": Operand(spec=p.left)}
        operands["b"] = Operand(spec=p.right, constant=p.weight)
        operands["b_scale"], operands["b_zero"] = weight_quantisation(
            p.n, p.weight_dtype, per_channel=p.per_channel and p.n > 1
        )
        if p.op == "integer-to-float":
            # The left side's scale and zero point are computed while the network runs.
            operands["a_scale"], operands["a_zero"] = data((), "float32"), data((), p.left.dtype)
        elif p.op != "dynamic-quantize":
            operands["a_scale"], operands["a_zero"] = quantisation(p.left.dtype)
        if p.op == "matmul-integer":
            operands["b_zero"] = zero_point(p.weight_dtype)
        if p.output.dtype in EIGHT_BITS:
            operands["y_scale"], operands["y_zero"] = quantisation(p.output.dtype)
        if p.bias:
            operands["bias"] = weight((p.n,), "int32" if p.op == "qgemm" else "float32")
        attributes = {"transA": int(p.trans_a), "transB": int(p.trans_b)} if p.op == "qgemm" else {}
        return build(_ONNX[p.op], [operands.get(name) for name in _PLACES[p.op]], [p.output], attributes)


# Dynamic quantisation gives unsigned weights, static quantisation signed ones.
_UNSIGNED = frozenset({"dynamic-quantize", "integer-to-float", "matmul-integer"})

KIND = GemmInt8Kind()
