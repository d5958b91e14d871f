"""Matrix product over broadcast batch axes: the linear layers and attention products of transformers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec, broadcast_shape
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, qualified, weight
from opmark.kinds._shared.shapes import scaled, size_bytes

_FUSED = f"{MICROSOFT}:FusedMatMul"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMul:
    """[*batch_a, m, k] times [*batch_b, k, n].

    `trans_a` and `trans_b` mark operands whose last two axes are stored swapped, `trans_batch_a` and `trans_batch_b`
    those whose rows come before the batch axes. `scale` multiplies the result; `weight` marks a constant right side.
    """

    batch_a: tuple[int, ...]
    batch_b: tuple[int, ...]
    m: int
    k: int
    n: int
    trans_a: bool = False
    trans_b: bool = False
    trans_batch_a: bool = False
    trans_batch_b: bool = False
    scale: bool = False
    weight: bool = False
    dtype: str = "float32"

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch axes of the result."""
        return broadcast_shape(self.batch_a, self.batch_b)

    @property
    def left(self) -> tuple[int, ...]:
        """Shape of the left operand as stored."""
        return _stored(self.batch_a, self.m, self.k, self.trans_a, self.trans_batch_a)

    @property
    def right(self) -> tuple[int, ...]:
        """Shape of the right operand as stored."""
        return _stored(self.batch_b, self.k, self.n, self.trans_b, self.trans_batch_b)


class MatMulKind(Kind[MatMul]):
    """Batched matrix product."""

    name = "matmul"
    parameters = MatMul
    matrix = True
    most_flops = 6_000_000_000
    most_bytes = 256 * 2**20
    onnx_ops = frozenset({"MatMul", _FUSED})
    aten_ops = frozenset({"bmm", "baddbmm"})
    space = {
        "role": Choice(("linear", "linear", "linear", "scores", "context")),
        "batch": Choice((1, 1, 1, 1, 2, 4, 8)),
        "heads": Choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 32)),
        "length": Range(7, 1024),
        "k": Range(32, 4096, 8),
        "n": Range(32, 8192, 8),
        "head_size": Choice((32, 64, 64, 64, 80, 96, 128)),
        "trans_b": Choice((False, True)),
        "scale": Choice((False, False, False, True)),
    }

    def work(self, p: MatMul) -> Work:
        right = size_bytes(p.right, p.dtype)
        elements = math.prod(p.batch) * p.m * p.n
        return Work(
            flops=elements * (2 * p.k + p.scale),
            read_bytes=size_bytes(p.left, p.dtype) + right,
            written_bytes=size_bytes((*p.batch, p.m, p.n), p.dtype),
            weight_bytes=right if p.weight else 0,
        )

    def features(self, p: MatMul) -> dict[str, float]:
        # A left batch times one right matrix runs as one product with more rows.
        shared = math.prod(p.batch_b) == 1 and not p.trans_a and not p.trans_batch_a
        rows = p.m * math.prod(p.batch) if shared else p.m
        return {
            "products": 1 if shared else math.prod(p.batch),
            "m": rows,
            "k": p.k,
            "n": p.n,
            "batch_a": math.prod(p.batch_a),
            "batch_b": math.prod(p.batch_b),
            "trans_a": float(p.trans_a),
            "trans_b": float(p.trans_b),
            "trans_batch": float(p.trans_batch_a or p.trans_batch_b),
            "scale": float(p.scale),
            "weight": float(p.weight),
            "fused": float(_is_fused(p)),
        }

    def code_path(self, p: MatMul) -> dict[str, float]:
        # torch multiplies matrices of fewer than 400 products in plain loops (`bmm_out_or_baddbmm_` in ATen's
        # native/LinearAlgebra.cpp).
        return {"by_loops": float(p.m * p.k * p.n < 400)}

    def shape_group(self, p: MatMul) -> str:
        return f"{p.batch_b}-{p.m}-{p.k}-{int(p.weight)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> MatMul | None:
        length, head_size, batch = values["length"], values["head_size"], values["batch"]
        onnx = setting.language == "onnx"
        heads = (batch, values["heads"]) if onnx else (batch * values["heads"],)
        if values["role"] == "linear":
            if not onnx:
                return None
            sizes = {"batch_a": (batch,), "batch_b": (), "m": length, "k": values["k"], "n": values["n"]}
        elif values["role"] == "scores":
            sizes = {"batch_a": heads, "batch_b": heads, "m": length, "k": head_size, "n": length}
        else:
            sizes = {"batch_a": heads, "batch_b": heads, "m": length, "k": length, "n": head_size}
        scores = values["role"] == "scores"
        p = MatMul(
            **sizes,
            trans_b=bool(scores and values["trans_b"]),
            scale=bool(scores and onnx and values["scale"]),
            weight=values["role"] == "linear",
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: MatMul, width: float, extent: float) -> MatMul:
        if p.weight:
            m = p.m if p.m == 1 else scaled(p.m, extent)
            return replace(p, m=m, k=scaled(p.k, width), n=scaled(p.n, width))
        # Attention: rows and columns as long as the sequence, the other axis as wide as a head.
        square = p.m == p.n
        return replace(
            p,
            m=p.m if p.m == 1 else scaled(p.m, extent),
            k=scaled(p.k, width if square else extent if p.k == p.m else width),
            n=scaled(p.n, extent if square else width),
        )

    def from_onnx(self, node: OnnxNode) -> MatMul | None:
        a, b = present(node, 0), present(node, 1)
        if a is None or b is None or not a.spec.shape or not b.spec.shape:
            return None
        attributes = node.attributes if qualified(node) == _FUSED else {}
        flags = {name: bool(attributes.get(name, 0)) for name in ("transA", "transB", "transBatchA", "transBatchB")}
        # A vector is a row on the left and a column on the right.
        left = a.spec.shape if len(a.spec.shape) > 1 else (1, *a.spec.shape)
        right = b.spec.shape if len(b.spec.shape) > 1 else (*b.spec.shape, 1)
        batch_a, m, k = _read(left, flags["transA"], flags["transBatchA"])
        batch_b, _, n = _read(right, flags["transB"], flags["transBatchB"])
        return MatMul(
            batch_a=batch_a,
            batch_b=batch_b,
            m=m,
            k=k,
            n=n,
            trans_a=flags["transA"],
            trans_b=flags["transB"],
            trans_batch_a=flags["transBatchA"],
            trans_batch_b=flags["transBatchB"],
            scale=float(attributes.get("alpha", 1.0)) != 1.0,
            weight=b.constant,
            dtype=a.spec.dtype,
        )

    def to_onnx(self, p: MatMul) -> OnnxNode | None:
        inputs = [data(p.left, p.dtype), weight(p.right, p.dtype) if p.weight else data(p.right, p.dtype)]
        outputs = [TensorSpec((*p.batch, p.m, p.n), p.dtype)]
        if not _is_fused(p):
            return build("MatMul", inputs, outputs)
        attributes = {
            "transA": int(p.trans_a),
            "transB": int(p.trans_b),
            "transBatchA": int(p.trans_batch_a),
            "transBatchB": int(p.trans_batch_b),
            "alpha": 0.125 if p.scale else 1.0,
        }
        return build(_FUSED, inputs, outputs, attributes)

    def from_aten(self, call: AtenCall) -> MatMul | None:
        # A `baddbmm` adds a matrix while it scales, which costs as much as scaling.
        first = 1 if calls.operator(call) == "baddbmm" else 0
        a, b = calls.tensor(call, first), calls.tensor(call, first + 1)
        if a is None or b is None:
            return None
        left, right = calls.stride(call, first), calls.stride(call, first + 1)
        # One right matrix for the whole batch: a linear layer after a transpose of its rows and batch.
        one = right is not None and right[0] == 0 and b.shape[0] > 1
        return MatMul(
            batch_a=a.shape[:1],
            batch_b=(1,) if one else b.shape[:1],
            m=a.shape[1],
            k=a.shape[2],
            n=b.shape[2],
            trans_a=calls.transposed(left),
            trans_b=calls.transposed(right),
            # Elsewhere torch multiplies at one speed whichever comes first.
            trans_batch_a=one and left is not None and left[2] == 1 and left[0] < left[1],
            scale=bool(first),
            weight=calls.is_weight(call, first + 1),
            dtype=a.dtype,
        )

    def to_aten(self, p: MatMul) -> AtenCall | None:
        # Torch has one batch axis. It stands first on the right, where one matrix may serve the whole batch.
        one = len(p.batch_a) == 1 and p.batch_b == (1,) != p.batch_a
        if p.trans_batch_b or not p.batch_a or not (one or (p.batch_a == p.batch_b and not p.trans_batch_a)):
            return None
        if p.trans_a and p.trans_batch_a:
            return None
        count = math.prod(p.batch_a)
        left, right, shape = (count, p.m, p.k), (count, p.k, p.n), (count, p.m, p.n)
        strides = [calls.swapped(left) if p.trans_a else None, calls.swapped(right) if p.trans_b else None]
        if p.trans_batch_a:
            strides[0] = calls.permuted(left, (1, 0, 2))
        if one:
            strides[1] = (0, 1, p.k) if p.trans_b else (0, p.n, 1)
        a, b, result = (TensorSpec(each, p.dtype) for each in (left, right, shape))
        if not p.scale:
            return calls.build("bmm", a, b, outputs=[result], strides=strides, weights=(1,) if p.weight else ())
        strides, weights = [None, *strides], (2,) if p.weight else ()
        return calls.build("baddbmm", result, a, b, alpha=0.125, outputs=[result], strides=strides, weights=weights)


def _is_fused(p: MatMul) -> bool:
    return p.trans_a or p.trans_b or p.trans_batch_a or p.trans_batch_b or p.scale


def _stored(batch: tuple[int, ...], rows: int, columns: int, transposed: bool, rows_first: bool) -> tuple[int, ...]:
    first, last = (columns, rows) if transposed else (rows, columns)
    return (first, *batch, last) if rows_first else (*batch, first, last)


def _read(shape: tuple[int, ...], transposed: bool, rows_first: bool) -> tuple[tuple[int, ...], int, int]:
    batch, first = (shape[1:-1], shape[0]) if rows_first else (shape[:-2], shape[-2])
    return (batch, shape[-1], first) if transposed else (batch, first, shape[-1])


KIND = MatMulKind()
