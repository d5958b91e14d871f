"""The elementwise functions in ATen's spelling."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten
from opmark.kinds._shared.functions import COMPARISONS

if TYPE_CHECKING:
    from opmark.kinds.elementwise import Elementwise

_UNARY = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "erf": "erf", "exp": "exp", "log": "log", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "neg": "neg", "reciprocal": "reciprocal", "abs": "abs", "sign": "sign", "sin": "sin",
    "cos": "cos", "tan": "tan", "atan": "atan", "floor": "floor", "ceil": "ceil", "round": "round", "isnan": "isnan",
    "isinf": "isinf", "expm1": "expm1", "log1p": "log1p", "logical_not": "not", "bitwise_not": "bitwise-not",
    "gelu": "gelu", "silu": "silu", "mish": "mish", "softplus": "softplus", "elu": "elu", "hardswish": "hard-swish",
    "hardsigmoid": "hard-sigmoid", "leaky_relu": "leaky-relu", "hardtanh": "clip", "clamp": "clip",
    "clamp_min": "clip", "clamp_max": "clip",
}  # fmt: skip
_BINARY = {
    "add": "add", "sub": "sub", "rsub": "sub", "mul": "mul", "div": "div", "pow": "pow", "remainder": "mod",
    "fmod": "mod", "floor_divide": "floor-divide", "maximum": "max", "minimum": "min", "eq": "equal",
    "ne": "not-equal", "lt": "less", "le": "less-or-equal", "gt": "greater", "ge": "greater-or-equal",
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "bitwise-and",
    "bitwise_or": "bitwise-or", "prelu": "prelu", "_prelu_kernel": "prelu", "masked_fill": "masked-fill",
}  # fmt: skip
_TERNARY = {"where": "where", "addcmul": "addcmul", "addcdiv": "addcdiv", "lerp": "lerp"}
_OPERATIONS = _UNARY | _BINARY | _TERNARY
NAMES = frozenset(_OPERATIONS) | frozenset(f"{name}_" for name in _OPERATIONS)
# The plainest spelling of each; where several ATen names mean one operation, the first.
_NAMES = {operation: name for name, operation in reversed(_OPERATIONS.items())} | {"clip": "hardtanh"}
_SCALAR_OVERLOADS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "remainder"})
_PLAIN = frozenset({"maximum", "minimum", "logical_and", "logical_or", "logical_xor", "floor_divide", "_prelu_kernel"})
_NUMBERS = {"clip": (0.0, 6.0), "leaky-relu": (0.01,)}


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of an `Elementwise`, or None where a form is not covered."""
    name = _aten.operator(call)
    inplace = name.endswith("_")
    name = name.removesuffix("_")
    op = _OPERATIONS[name]
    count = 1 if name in _UNARY else 2 if name in _BINARY else 3
    operands = [_aten.argument(call, index) for index in range(count)]
    if name == "masked_fill":
        operands = operands[:2]
    if op == "gelu" and call.keywords.get("approximate", "none") == "tanh":
        op = "gelu-tanh"
    tensors = [item for item in operands if isinstance(item, TensorSpec)]
    if not tensors or any(item is None or isinstance(item, tuple) for item in operands):
        return None
    exponent = None
    if op == "pow" and isinstance(operands[1], (int, float)):
        exponent = float(operands[1])
    constant = tuple(
        index for index, item in enumerate(operands) if not isinstance(item, TensorSpec) or _aten.is_weight(call, index)
    )
    values = [item for item in operands[1 if op == "where" else 0 :] if isinstance(item, TensorSpec)]
    return {
        "op": op,
        "shapes": tuple(item.shape if isinstance(item, TensorSpec) else () for item in operands),
        "constant": constant,
        "exponent": exponent,
        "inplace": inplace,
        "dtype": (values or tensors)[0].dtype,
    }


def write(p: "Elementwise") -> AtenCall | None:
    """The call, or None where torch has no such operation."""
    op = "gelu" if p.op == "gelu-tanh" else p.op
    name = _NAMES.get(op)
    if name is None or (p.inplace and op in {"where", "prelu", *COMPARISONS}):
        return None
    name = "_prelu_kernel" if name == "prelu" else name
    scalar = 2 if "int" in p.dtype else True if p.dtype == "bool" else 0.5
    operands: list[Any] = [TensorSpec(shape, dtype) for shape, dtype in zip(p.shapes, p.dtypes, strict=True)]
    weights = list(p.constant)
    result = TensorSpec(p.output, p.output_dtype)
    keywords: dict[str, Any] = {"approximate": "tanh"} if p.op == "gelu-tanh" else {}
    called = f"{name}_" if p.inplace else name
    if len(operands) == 1:
        numbers = _NUMBERS.get(op, ())
        return _aten.build(called, *operands, *numbers, outputs=[result], weights=weights, **keywords)
    if op == "masked-fill":
        return _aten.build(f"{called}.Scalar", *operands, scalar, outputs=[result], weights=weights)
    if op == "where":
        return _aten.build(f"{called}.self", *operands, outputs=[result], weights=weights)
    if len(operands) == 3:
        last = ".Tensor" if op == "lerp" else ""
        return _aten.build(f"{called}{last}", *operands, outputs=[result], weights=weights)
    if len(operands) > 3:
        return None
    if op == "pow":
        if p.exponent is not None:
            weights = [index for index in weights if index != 1]
            return _aten.build(f"{called}.Tensor_Scalar", operands[0], p.exponent, outputs=[result], weights=weights)
        return _aten.build(
            f"{called}.Tensor" if p.inplace else f"{called}.Tensor_Tensor", *operands, outputs=[result], weights=weights
        )
    number = 1 in p.constant and p.shapes[1] == ()
    if name in _PLAIN:
        return _aten.build(called, *operands, outputs=[result], weights=weights)
    if number:
        operands[1] = scalar
        weights = [index for index in weights if index != 1]
    kind = "Scalar" if number and name in _SCALAR_OVERLOADS else "Tensor"
    return _aten.build(f"{called}.{kind}", *operands, outputs=[result], weights=weights)
