"""Elementwise functions of one, two or more tensors that broadcast."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kind import FLOATING, Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec, broadcast_shape
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import build, constant, data, present, qualified, weight
from opmark.kinds._onnx.quantised import interleaved, quantisation, spread
from opmark.kinds._shared.functions import (
    ATEN,
    ATEN_BINARY,
    ATEN_UNARY,
    BINARY,
    COMPARISONS,
    FLOPS,
    FROM_ATEN,
    FROM_ONNX,
    LOGICAL,
    ONNX,
    OPERATIONS,
    UNARY,
)
from opmark.kinds._shared.shapes import (
    EIGHT_BITS,
    code,
    size_bytes,
    tensor_of_form,
    varied,
    varied_like,
    without_channels,
)

# The operations that networks apply in place.
_IN_PLACE = frozenset({"relu", "clip", "sigmoid", "hard-swish", "leaky-relu", "add", "mul", "sub", "div"})
_PARAMETERS: dict[str, dict[str, Any]] = {
    "leaky-relu": {"alpha": 0.01},
    "qlinear-leaky-relu": {"alpha": 0.01},
    "gelu-tanh": {"approximate": "tanh"},
    "silu": {"alpha": 1.0},
}
_QUANTISED = "qlinear-"
# ATen's names whose overload with a number is called Scalar, and those that have one overload only.
_SCALAR_OVERLOADS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "remainder"})
_PLAIN = frozenset({"maximum", "minimum", "logical_and", "logical_or", "logical_xor", "floor_divide", "_prelu_kernel"})
_NUMBERS = {"clip": (0.0, 6.0), "leaky-relu": (0.01,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise:
    """`shapes` are those of the inputs in order; `constant` holds the places of constant inputs.

    `dtype` is the type of the values (a condition is always bool); `exponent` is the constant exponent of a power, for
    which runtimes have short cuts; `inplace` writes over the first input.
    """

    op: str
    shapes: tuple[tuple[int, ...], ...]
    constant: tuple[int, ...] = ()
    exponent: float | None = None
    inplace: bool = False
    dtype: str = "float32"

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        return broadcast_shape(*self.shapes)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Element type of every input."""
        first = "bool" if self.op in {"where", "qlinear-where"} else self.dtype
        rest = "bool" if self.op == "masked-fill" else self.dtype
        return (first, *(rest for _ in self.shapes[1:]))

    @property
    def output_dtype(self) -> str:
        """Element type of the result."""
        return "bool" if self.op in COMPARISONS or self.op in LOGICAL else self.dtype


class ElementwiseKind(Kind[Elementwise]):
    """Elementwise function."""

    name = "elementwise"
    parameters = Elementwise
    most_bytes = 128 * 2**20
    categories = ("op",)
    dtypes = FLOATING | {"int8"}
    onnx_ops = frozenset(FROM_ONNX)
    aten_ops = frozenset(FROM_ATEN) | frozenset(f"{name}_" for name in FROM_ATEN)
    space = {
        "arity": Choice(("unary", "binary", "binary", "where")),
        "unary": Choice(UNARY),
        "binary": Choice(BINARY),
        "form": Choice(("image", "image", "sequence", "sequence", "attention", "vector")),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "channels": Range(8, 4096, 8),
        "extent": Range(4, 512),
        "heads": Choice((4, 8, 12, 16)),
        "broadcast": Choice(("none", "none", "none", "channel", "scalar", "mask")),
        "constant": Choice((True, False)),
        "exponent": Choice((2.0, 3.0, 0.5)),
        "inplace": Choice((False, False, True)),
    }

    def work(self, p: Elementwise) -> Work:
        elements = math.prod(p.output)
        sizes = [size_bytes(shape, dtype) for shape, dtype in zip(p.shapes, p.dtypes, strict=True)]
        times = max(1, len(p.shapes) - 1) if p.op in {"sum", "max", "min", "mean"} else 1
        flops = 1 if p.op == "pow" and p.exponent == 2.0 else 2 if p.op == "pow" and p.exponent == 3.0 else FLOPS[p.op]
        return Work(
            flops=elements * flops * times,
            read_bytes=sum(sizes),
            written_bytes=size_bytes(p.output, p.output_dtype),
            weight_bytes=sum(sizes[place] for place in p.constant),
        )

    def features(self, p: Elementwise) -> dict[str, float]:
        output = p.output
        counts = sorted((math.prod(shape) for shape in p.shapes), reverse=True)
        smallest = min(p.shapes, key=math.prod)
        return {
            "op": code(p.op, OPERATIONS),
            "inputs": len(p.shapes),
            "elements": math.prod(output),
            "second_elements": counts[1] if len(counts) > 1 else 0,
            "third_elements": counts[2] if len(counts) > 2 else 0,
            "inner": output[-1] if output else 1,
            # Consecutive elements over which the smallest input stays the same, or advances with the output.
            "smallest_run": _run(smallest, output),
            "broadcasts": float(sum(shape != output for shape in p.shapes)),
            "rank": len(output),
            "constants": len(p.constant),
            "exponent": p.exponent or 0.0,
            "inplace": float(p.inplace),
        }

    def details(self, p: Elementwise) -> dict[str, float]:
        power = p.exponent if p.op == "pow" else None
        return {
            "compares": float(p.op in COMPARISONS or p.op in LOGICAL),
            "transcendental": float(FLOPS[p.op] >= 8),
            "square": float(power == 2.0),
            "root": float(power in {0.5, -0.5}),
            "plain_power": float(p.op == "pow" and power not in {2.0, 3.0, 0.5, -0.5}),
            "scalar": float(any(math.prod(shape) == 1 for shape in p.shapes) and math.prod(p.output) > 1),
            # Rows of one element: the broadcast input is fetched once per element.
            "narrow": float(len(p.output) > 1 and p.output[-1] == 1 and len(p.shapes) > 1),
        }

    def code_path(self, p: Elementwise) -> dict[str, float]:
        # A loop takes the smallest input element by element, or keeps it for a run of them; numbers it always keeps.
        # `smallest_run` of a choice between a tensor and a number tells nothing of its flags, and processors learn
        # some ten thousand flags by heart (decision 0058).
        smallest = min((shape for shape in p.shapes if math.prod(shape) > 1), key=math.prod, default=p.output)
        inner = next((axis for axis in range(1, len(p.output) + 1) if p.output[-axis] > 1), 1)
        flags = p.shapes[p.dtypes.index("bool")] if "bool" in p.dtypes and p.dtype != "bool" else None
        return {
            "by_kept": float(inner > len(smallest) or smallest[-inner] == 1),
            "by_flag": float(flags == ()),
            "run": math.log1p(_run(smallest, p.output)),
            "flags": math.log1p(math.prod(flags)) if flags else 0.0,
        }

    def shape_group(self, p: Elementwise) -> str:
        return f"{p.op}-{without_channels(p.output)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Elementwise | None:
        batch, channels, extent = values["batch"], values["channels"], values["extent"]
        shape = tensor_of_form(values["form"], batch, channels, extent, values["heads"])
        arity = values["arity"]
        op = {"unary": values["unary"], "binary": values["binary"], "where": "where"}[arity]
        if setting.dtype in EIGHT_BITS:
            op = _quantised(op)
            if op is None or setting.language != "onnx":
                return None
        if op == "bias-gelu" and values["form"] != "sequence":
            return None
        if setting.language == "aten" and op in {"bias-gelu", "fast-gelu", "quick-gelu", "sum"}:
            return None
        small = () if op == "pow" else _small(shape, "channel" if op == "bias-gelu" else values["broadcast"])
        fixed = small == () or (values["constant"] and small != shape)
        shapes = {"unary": (shape,), "binary": (shape, small), "where": (small, shape, ())}[arity]
        exponent = values["exponent"] if op == "pow" else None
        p = Elementwise(
            op=op,
            shapes=(shape, ()) if op == "pow" else shapes,
            constant=(1,) if op == "pow" or (arity == "binary" and fixed) else (2,) if arity == "where" else (),
            exponent=exponent,
            inplace=bool(values["inplace"] and setting.language == "aten" and op in _IN_PLACE and arity != "where"),
            dtype="uint8" if op.startswith(_QUANTISED) else setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: Elementwise, width: float, extent: float) -> Elementwise:
        before = p.output
        after = varied(before, width, extent)
        return replace(p, shapes=tuple(varied_like(shape, before, after) for shape in p.shapes))

    def from_onnx(self, node: OnnxNode) -> Elementwise | None:
        op = FROM_ONNX[qualified(node)]
        if op == "gelu" and node.attributes.get("approximate", "none") == "tanh":
            op = "gelu-tanh"
        if op == "quick-gelu" and node.attributes.get("alpha", 1.702) == 1.0:
            # nothing to scale: ONNX Runtime takes a third of the time
            op = "silu"
        quantised = op.startswith(_QUANTISED)
        operands = list(spread(node)) if quantised else [operand for operand in node.inputs if operand is not None]
        if op == "clip":
            operands = operands[:1]
        if not operands or (op.endswith("where") and len(operands) != 3):
            return None
        exponent = None
        power = present(node, 1) if op == "pow" else None
        if power is not None and power.constant and power.spec.elements == 1 and power.value is not None:
            exponent = float(power.value[0])
        return Elementwise(
            op=op,
            shapes=tuple(operand.spec.shape for operand in operands),
            constant=tuple(place for place, operand in enumerate(operands) if operand.constant),
            exponent=exponent,
            dtype=operands[1 if op.endswith("where") else 0].spec.dtype,
        )

    def to_onnx(self, p: Elementwise) -> OnnxNode | None:
        if p.op not in ONNX:
            return None
        operands = tuple(
            weight(shape, dtype) if place in p.constant else data(shape, dtype)
            for place, (shape, dtype) in enumerate(zip(p.shapes, p.dtypes, strict=True))
        )
        inputs: list[Operand | None] = [*operands]
        if p.op.startswith(_QUANTISED):
            inputs = [*interleaved(operands, p.dtype), *quantisation(p.dtype)]
        if p.exponent is not None:
            inputs[1] = constant((p.exponent,), p.dtype, p.shapes[1])
        if p.op == "clip":
            inputs += [constant((0,), p.dtype, ()), constant((6,), p.dtype, ())]
        attributes = dict(_PARAMETERS.get(p.op, {}))
        if p.op == "mod" and p.dtype.startswith(("float", "bfloat")):
            attributes["fmod"] = 1
        return build(ONNX[p.op], inputs, [TensorSpec(p.output, p.output_dtype)], attributes)

    def from_aten(self, call: AtenCall) -> Elementwise | None:
        name = calls.operator(call)
        inplace, name = name.endswith("_"), name.removesuffix("_")
        op = FROM_ATEN[name]
        # A `masked_fill` is given its number beside the two tensors.
        count = 1 if name in ATEN_UNARY else 2 if name in ATEN_BINARY else 3
        operands = [calls.argument(call, index) for index in range(count)]
        if op == "gelu" and call.keywords.get("approximate", "none") == "tanh":
            op = "gelu-tanh"
        tensors = [item for item in operands if isinstance(item, TensorSpec)]
        if not tensors or any(item is None or isinstance(item, tuple) for item in operands):
            return None
        power = op == "pow" and isinstance(operands[1], (int, float))
        values = [item for item in operands[1 if op == "where" else 0 :] if isinstance(item, TensorSpec)]
        return Elementwise(
            op=op,
            shapes=tuple(item.shape if isinstance(item, TensorSpec) else () for item in operands),
            constant=tuple(
                index
                for index, item in enumerate(operands)
                if not isinstance(item, TensorSpec) or calls.is_weight(call, index)
            ),
            exponent=float(operands[1]) if power else None,
            inplace=inplace,
            dtype=(values or tensors)[0].dtype,
        )

    def to_aten(self, p: Elementwise) -> AtenCall | None:
        op = "gelu" if p.op == "gelu-tanh" else p.op
        name = ATEN.get(op)
        if name is None or len(p.shapes) > 3 or (p.inplace and op in {"where", "prelu", *COMPARISONS}):
            return None
        name = "_prelu_kernel" if name == "prelu" else name
        operands: list[Any] = [TensorSpec(shape, dtype) for shape, dtype in zip(p.shapes, p.dtypes, strict=True)]
        keywords: dict[str, Any] = {"approximate": "tanh"} if p.op == "gelu-tanh" else {}
        overload, weights = "", list(p.constant)
        # A constant scalar on the right is given as a number where its overload asks for one.
        number: Any = 2 if "int" in p.dtype else True if p.dtype == "bool" else 0.5
        if len(operands) == 1:
            operands += _NUMBERS.get(op, ())
        elif op == "masked-fill":
            operands, overload = [*operands, number], ".Scalar"
        elif op == "where":
            overload = ".self"
        elif len(operands) == 3:
            overload = ".Tensor" if op == "lerp" else ""
        elif op == "pow" and p.exponent is None:
            overload = ".Tensor" if p.inplace else ".Tensor_Tensor"
        elif name not in _PLAIN:
            fixed = p.exponent is not None or (1 in p.constant and p.shapes[1] == ())
            if fixed:
                operands[1] = number if p.exponent is None else p.exponent
                weights = [index for index in weights if index != 1]
            overload = ".Scalar" if fixed and name in _SCALAR_OVERLOADS else ".Tensor"
            overload = ".Tensor_Scalar" if op == "pow" else overload
        called = f"{name}_" if p.inplace else name
        outputs = [TensorSpec(p.output, p.output_dtype)]
        return calls.build(f"{called}{overload}", *operands, outputs=outputs, weights=weights, **keywords)


def _quantised(op: str) -> str | None:
    """The eight-bit operation that stands for `op`, or None."""
    nearest = {"sub": "add", "sum": "add", "add": "add", "mul": "mul", "where": "where", "leaky-relu": "leaky-relu"}
    near = nearest.get(op) or ("sigmoid" if op in {"sigmoid", "tanh", "gelu", "exp", "hard-sigmoid"} else None)
    return None if near is None else f"{_QUANTISED}{near}"


def _small(shape: tuple[int, ...], broadcast: str) -> tuple[int, ...]:
    """Shape of the second operand: full, one number per channel, a single number, or the same for every channel."""
    if broadcast == "none":
        return shape
    if broadcast == "scalar":
        return ()
    image = len(shape) == 4
    if broadcast == "channel":
        return (shape[1], 1, 1) if image else (shape[-1],)
    return (shape[0], 1, *shape[2:]) if image else (*shape[:-1], 1)


def _run(shape: tuple[int, ...], output: tuple[int, ...]) -> float:
    """The number of consecutive elements of `output` over which `shape` only advances, or only stays the same."""
    padded = (1,) * (len(output) - len(shape)) + shape
    run, still = 1, None
    for have, want in zip(reversed(padded), reversed(output), strict=True):
        if want == 1:
            continue
        here = have == 1
        if still is None:
            still = here
        if here != still:
            break
        run *= want
    return float(run)


KIND = ElementwiseKind()
