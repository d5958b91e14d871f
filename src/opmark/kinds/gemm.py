"""Product of two matrices, as in linear layers without a batch axis: `activation(A·B + bias)`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.activations import (
    ACTIVATIONS,
    activation_flops,
    activation_from_onnx,
    activation_to_onnx,
    fusable,
)
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, weight
from opmark.kinds._shared.shapes import code, scaled, size_bytes

_FUSED = f"{MICROSOFT}:FusedGemm"
BIASES = ("none", "row", "column", "matrix", "scalar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """[m, k] times [k, n]. `bias` is one of `BIASES`: a row is [n], a column [m, 1], a matrix [m, n].

    `trans_a` and `trans_b` mark operands stored transposed; `weight` marks a constant B.
    """

    m: int
    k: int
    n: int
    bias: str = "row"
    trans_a: bool = False
    trans_b: bool = True
    activation: str = ""
    weight: bool = True
    dtype: str = "float32"

    @property
    def bias_shape(self) -> tuple[int, ...] | None:
        """Shape of the bias, None without one."""
        shapes = {"row": (self.n,), "column": (self.m, 1), "matrix": (self.m, self.n), "scalar": ()}
        return shapes.get(self.bias)


class GemmKind(Kind[Gemm]):
    """Matrix product with bias."""

    name = "gemm"
    parameters = Gemm
    matrix = True
    most_flops = 6_000_000_000
    most_bytes = 512 * 2**20
    categories = ("activation", "bias")
    onnx_ops = frozenset({"Gemm", _FUSED})
    aten_ops = frozenset({"addmm", "mm", "mv", "addmv"})
    space = {
        "m": Range(1, 2048),
        "k": Range(16, 16384, 8),
        "n": Range(16, 16384, 8),
        "bias": Choice(("row", "row", "row", "none")),
        "trans_a": Choice((False, False, False, False, False, False, False, True)),
        "trans_b": Choice((True, True, True, False)),
        "activation": Choice(("", "", "relu")),
    }

    def work(self, p: Gemm) -> Work:
        weight_bytes = size_bytes((p.k, p.n), p.dtype) if p.weight else 0
        bias_bytes = size_bytes(p.bias_shape, p.dtype) if p.bias_shape is not None else 0
        right = size_bytes((p.k, p.n), p.dtype)
        per_element = 2 * p.k + (p.bias != "none") + activation_flops(p.activation)
        return Work(
            flops=p.m * p.n * per_element,
            read_bytes=size_bytes((p.m, p.k), p.dtype) + right + bias_bytes,
            written_bytes=size_bytes((p.m, p.n), p.dtype),
            weight_bytes=weight_bytes + (bias_bytes if p.weight else 0),
        )

    def features(self, p: Gemm) -> dict[str, float]:
        return {
            "m": p.m,
            "k": p.k,
            "n": p.n,
            "bias": code(p.bias, BIASES),
            "trans_a": float(p.trans_a),
            "trans_b": float(p.trans_b),
            "activation": code(p.activation, ACTIVATIONS),
            "weight": float(p.weight),
        }

    def shape_group(self, p: Gemm) -> str:
        return f"{p.m}-{p.k}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Gemm | None:
        onnx = setting.language == "onnx"
        p = Gemm(**{**values, "activation": values["activation"] if onnx else ""}, dtype=setting.dtype)
        return self.within_limits(p)

    def vary(self, p: Gemm, width: float, extent: float) -> Gemm:
        return replace(
            p, m=p.m if p.m == 1 else scaled(p.m, extent), k=scaled(p.k, width), n=max(1, scaled(p.n, width))
        )

    def from_onnx(self, node: OnnxNode) -> Gemm | None:
        a, b, c = present(node, 0), present(node, 1), present(node, 2)
        activation = activation_from_onnx(dict(node.attributes))
        if a is None or b is None or activation is None or len(a.spec.shape) != 2:
            return None
        trans_a, trans_b = bool(node.attributes.get("transA", 0)), bool(node.attributes.get("transB", 0))
        m, k = reversed(a.spec.shape) if trans_a else a.spec.shape
        n = b.spec.shape[0] if trans_b else b.spec.shape[1]
        return Gemm(
            m=m,
            k=k,
            n=n,
            bias=_bias(c.spec if c is not None else None, m, n, lone_rows=False),
            trans_a=trans_a,
            trans_b=trans_b,
            activation=activation,
            weight=b.constant,
            dtype=a.spec.dtype,
        )

    def to_onnx(self, p: Gemm) -> OnnxNode | None:
        # The fused matrix product has all activations of the fused convolution except this one.
        if not fusable(p.activation) or p.activation == "clip":
            return None
        right = (p.n, p.k) if p.trans_b else (p.k, p.n)
        inputs = [
            data((p.k, p.m) if p.trans_a else (p.m, p.k), p.dtype),
            weight(right, p.dtype) if p.weight else data(right, p.dtype),
            None if p.bias_shape is None else weight(p.bias_shape, p.dtype),
        ]
        attributes: dict[str, Any] = {"transA": int(p.trans_a), "transB": int(p.trans_b)}
        asked = activation_to_onnx(p.activation)
        values: Any = asked.pop("activation_params", ())
        attributes |= asked | dict(zip(("activation_alpha", "activation_beta"), values, strict=False))
        return build(_FUSED if p.activation else "Gemm", inputs, [TensorSpec((p.m, p.n), p.dtype)], attributes)

    def from_aten(self, call: AtenCall) -> Gemm | None:
        first = 1 if calls.operator(call).startswith("add") else 0
        a, b = calls.tensor(call, first), calls.tensor(call, first + 1)
        if a is None or b is None:
            return None
        m, k = a.shape
        n = b.shape[1] if len(b.shape) == 2 else 1
        return Gemm(
            m=m,
            k=k,
            n=n,
            bias=_bias(calls.tensor(call, 0) if first else None, m, n),
            # Strides show what is stored transposed.
            trans_a=calls.transposed(calls.stride(call, first)),
            trans_b=calls.transposed(calls.stride(call, first + 1)),
            weight=calls.is_weight(call, first + 1),
            dtype=a.dtype,
        )

    def to_aten(self, p: Gemm) -> AtenCall | None:
        # Torch fuses no activation.
        if p.activation:
            return None
        left, right = (p.m, p.k), (p.k, p.n)
        strides = [calls.swapped(left) if p.trans_a else None, calls.swapped(right) if p.trans_b else None]
        a, b, result = (TensorSpec(shape, p.dtype) for shape in (left, right, (p.m, p.n)))
        if p.bias_shape is None:
            return calls.build("mm", a, b, outputs=[result], strides=strides, weights=(1,) if p.weight else ())
        bias = TensorSpec(p.bias_shape, p.dtype)
        weights = (0, 2) if p.weight else ()
        return calls.build("addmm", bias, a, b, outputs=[result], strides=[None, *strides], weights=weights)


def _bias(spec: TensorSpec | None, m: int, n: int, *, lone_rows: bool = True) -> str:
    """The name of a bias's shape; with `lone_rows`, one element is a scalar beside a single column too."""
    if spec is None:
        return "none"
    if spec.elements == 1 and m * n > 1 and (lone_rows or n > 1 or len(spec.shape) == 0):
        return "scalar"
    if spec.shape in {(n,), (1, n)}:
        return "row"
    return "matrix" if spec.shape == (m, n) else "column"


KIND = GemmKind()
