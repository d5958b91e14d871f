"""Activations that runtimes fuse into convolutions and matrix products."""

# Append only: a learner's category codes are the places in this list.
ACTIVATIONS = (
    "",
    "relu",
    "clip",
    "sigmoid",
    "tanh",
    "leaky-relu",
    "hard-sigmoid",
    "gelu",
    "silu",
    "hard-swish",
    "elu",
    "mish",
    "gelu-tanh",
)

_ONNX = {
    "Relu": "relu",
    "Clip": "clip",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "LeakyRelu": "leaky-relu",
    "HardSigmoid": "hard-sigmoid",
    "Gelu": "gelu",
    "QuickGelu": "silu",
    "HardSwish": "hard-swish",
    "Elu": "elu",
}
_TO_ONNX = {name: op_type for op_type, name in _ONNX.items()}
# Their values do not change the instructions, so usual values stand for all.
_PARAMETERS = {"clip": (0.0, 6.0), "leaky-relu": (0.01,), "hard-sigmoid": (0.2, 0.5)}
_FLOPS = {"": 0, "relu": 1, "clip": 2, "leaky-relu": 2, "hard-sigmoid": 4, "hard-swish": 5}


def activation_flops(name: str) -> int:
    """Floating-point operations per element; a transcendental function counts as 8."""
    return _FLOPS.get(name, 8)


def activation_from_onnx(attributes: object) -> str | None:
    """The canonical name of the `activation` attribute, None where it is unknown."""
    assert isinstance(attributes, dict)
    found = attributes.get("activation", "")
    return "" if not found else _ONNX.get(found)


def activation_to_onnx(name: str) -> dict[str, object]:
    """The attributes that ask a `FusedConv` or a blocked `Conv` for `name`. Raises `KeyError` if it cannot."""
    if not name:
        return {}
    asked: dict[str, object] = {"activation": _TO_ONNX[name]}
    if name in _PARAMETERS:
        asked["activation_params"] = _PARAMETERS[name]
    return asked


def fusable(name: str) -> bool:
    """True if ONNX Runtime's fused kernels can apply `name`."""
    return name in {"", "relu", "clip", "sigmoid", "tanh", "leaky-relu", "hard-sigmoid"}
