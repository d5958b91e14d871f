"""The elementwise functions: canonical names, costs, and their names in ONNX and ATen."""

# Floating-point operations per output element: comparisons and selections 1, a division or root 4, a transcendental 8.
FLOPS = {
    "add": 1, "sub": 1, "mul": 1, "neg": 1, "abs": 1, "sign": 1, "relu": 1, "max": 1, "min": 1, "sum": 1, "mean": 1,
    "where": 1, "equal": 1, "not-equal": 1, "less": 1, "less-or-equal": 1, "greater": 1, "greater-or-equal": 1,
    "and": 1, "or": 1, "xor": 1, "not": 1, "bitwise-and": 1, "bitwise-or": 1, "bitwise-not": 1,
    "isnan": 1, "isinf": 1, "floor": 1, "ceil": 1, "round": 1, "masked-fill": 1, "dropout": 2,
    "clip": 2, "leaky-relu": 2, "prelu": 2, "thresholded-relu": 2, "mod": 4, "div": 4, "floor-divide": 5,
    "reciprocal": 4, "sqrt": 4, "rsqrt": 5, "square": 1, "softsign": 6, "hard-sigmoid": 4, "hard-swish": 5,
    "addcmul": 3, "addcdiv": 6, "lerp": 3,
    "exp": 8, "log": 8, "sigmoid": 8, "tanh": 8, "erf": 8, "sin": 8, "cos": 8, "tan": 8, "atan": 8, "pow": 8,
    "elu": 8, "selu": 8, "celu": 8, "softplus": 10, "silu": 9, "quick-gelu": 10, "gelu": 12, "gelu-tanh": 14,
    "fast-gelu": 14, "bias-gelu": 13, "mish": 20, "expm1": 8, "log1p": 8, "swiglu": 10,
    # Of eight-bit numbers: both sides centred, combined, scaled, rounded and clamped; functions of one are looked up.
    "qlinear-add": 5, "qlinear-mul": 6, "qlinear-sigmoid": 1, "qlinear-leaky-relu": 1, "qlinear-where": 3,
}  # fmt: skip

# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(FLOPS)

ONNX = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs", "sign": "Sign",
    "relu": "Relu", "max": "Max", "min": "Min", "sum": "Sum", "mean": "Mean", "where": "Where", "equal": "Equal",
    "less": "Less", "less-or-equal": "LessOrEqual", "greater": "Greater", "greater-or-equal": "GreaterOrEqual",
    "and": "And", "or": "Or", "xor": "Xor", "not": "Not", "bitwise-and": "BitwiseAnd", "bitwise-or": "BitwiseOr",
    "bitwise-not": "BitwiseNot", "isnan": "IsNaN", "isinf": "IsInf", "floor": "Floor", "ceil": "Ceil",
    "round": "Round", "clip": "Clip", "leaky-relu": "LeakyRelu", "prelu": "PRelu",
    "thresholded-relu": "ThresholdedRelu", "mod": "Mod", "reciprocal": "Reciprocal", "sqrt": "Sqrt",
    "softsign": "Softsign", "hard-sigmoid": "HardSigmoid", "hard-swish": "HardSwish", "exp": "Exp", "log": "Log",
    "sigmoid": "Sigmoid", "tanh": "Tanh", "erf": "Erf", "sin": "Sin", "cos": "Cos", "tan": "Tan", "atan": "Atan",
    "pow": "Pow", "elu": "Elu", "selu": "Selu", "celu": "Celu", "softplus": "Softplus",
    "quick-gelu": "com.microsoft:QuickGelu", "silu": "com.microsoft:QuickGelu", "gelu": "Gelu", "gelu-tanh": "Gelu",
    "fast-gelu": "com.microsoft:FastGelu", "bias-gelu": "com.microsoft:BiasGelu", "mish": "Mish",
    "qlinear-add": "com.microsoft:QLinearAdd", "qlinear-mul": "com.microsoft:QLinearMul",
    "qlinear-sigmoid": "com.microsoft:QLinearSigmoid", "qlinear-leaky-relu": "com.microsoft:QLinearLeakyRelu",
    "qlinear-where": "com.microsoft:QLinearWhere",
}  # fmt: skip

FROM_ONNX = {name: operation for operation, name in ONNX.items() if operation not in {"gelu-tanh", "silu"}}
FROM_ONNX["com.microsoft:Gelu"] = "gelu"

ATEN_UNARY = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "erf": "erf", "exp": "exp", "log": "log", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "neg": "neg", "reciprocal": "reciprocal", "abs": "abs", "sign": "sign", "sin": "sin",
    "cos": "cos", "tan": "tan", "atan": "atan", "floor": "floor", "ceil": "ceil", "round": "round", "isnan": "isnan",
    "isinf": "isinf", "expm1": "expm1", "log1p": "log1p", "logical_not": "not", "bitwise_not": "bitwise-not",
    "gelu": "gelu", "silu": "silu", "mish": "mish", "softplus": "softplus", "elu": "elu", "hardswish": "hard-swish",
    "hardsigmoid": "hard-sigmoid", "leaky_relu": "leaky-relu", "hardtanh": "clip", "clamp": "clip",
    "clamp_min": "clip", "clamp_max": "clip",
}  # fmt: skip
ATEN_BINARY = {
    "add": "add", "sub": "sub", "rsub": "sub", "mul": "mul", "div": "div", "pow": "pow", "remainder": "mod",
    "fmod": "mod", "floor_divide": "floor-divide", "maximum": "max", "minimum": "min", "eq": "equal",
    "ne": "not-equal", "lt": "less", "le": "less-or-equal", "gt": "greater", "ge": "greater-or-equal",
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "bitwise-and",
    "bitwise_or": "bitwise-or", "prelu": "prelu", "_prelu_kernel": "prelu", "masked_fill": "masked-fill",
}  # fmt: skip
ATEN_TERNARY = {"where": "where", "addcmul": "addcmul", "addcdiv": "addcdiv", "lerp": "lerp"}
FROM_ATEN = ATEN_UNARY | ATEN_BINARY | ATEN_TERNARY
# The plainest ATen name of each operation: the first of those that mean it.
ATEN = {operation: name for name, operation in reversed(FROM_ATEN.items())} | {"clip": "hardtanh"}

COMPARISONS = frozenset(
    {"equal", "not-equal", "less", "less-or-equal", "greater", "greater-or-equal", "isnan", "isinf"}
)
LOGICAL = frozenset({"and", "or", "xor", "not"})
# Operations that suites draw: one per way of computing, from which a learner infers the others.
UNARY = (
    "relu", "sigmoid", "tanh", "erf", "gelu", "exp", "sqrt", "neg", "reciprocal", "isnan", "clip", "hard-sigmoid",
    "hard-swish", "quick-gelu", "fast-gelu", "leaky-relu", "pow", "abs", "sin", "cos", "log", "softplus", "elu",
)  # fmt: skip
BINARY = ("add", "add", "add", "mul", "mul", "sub", "div", "sum", "equal", "less", "max", "bias-gelu")
