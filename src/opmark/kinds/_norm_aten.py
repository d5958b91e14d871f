"""ATen's spelling of normalisations."""

import math
from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.norm import Norm

_EPSILON = 1e-5
_BATCH = {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"}
NAMES = frozenset({"native_layer_norm", "native_group_norm", "_fused_rms_norm", "rms_norm", *_BATCH})


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Norm`."""
    name, x = _aten.operator(call), _aten.tensor(call, 0)
    if x is None:
        return None
    fields: dict[str, Any] = {"shape": x.shape, "dtype": x.dtype}
    if name in {"native_layer_norm", "_fused_rms_norm", "rms_norm"}:
        fields["op"] = "layer" if name == "native_layer_norm" else "rms"
        fields["axis"] = len(x.shape) - len(call.arguments[1])
        first = 2
    elif name == "native_group_norm":
        fields |= {"op": "group", "groups": int(_aten.argument(call, 6, "group", 1))}
        first = 1
    else:
        training = name != "_native_batch_norm_legit_no_training" and _aten.argument(call, 5, "training", False)
        fields["op"] = "batch-training" if training else "batch"
        first = 1
    fields["scale"] = _aten.tensor(call, first, "weight") is not None
    # RMS normalisation has no shift; the argument after its weight is a number.
    fields["shift"] = _aten.tensor(call, first + 1, "bias") is not None
    return fields


def write(p: "Norm") -> AtenCall | None:
    """The call, or None where torch has no such kernel."""
    x, result = TensorSpec(p.shape, p.dtype), TensorSpec(p.shape, p.dtype)
    vector = TensorSpec(p.shape[p.axis :] if p.op in {"layer", "rms"} else (p.channels,), p.dtype)
    scale, shift = (vector if p.scale else None), (vector if p.shift else None)
    places = tuple(range(1, 1 + p.scale + p.shift))
    if p.op == "layer":
        rows = TensorSpec((*p.shape[: p.axis], *(1 for _ in p.shape[p.axis :])), p.dtype)
        return _aten.build(
            "native_layer_norm", x, p.shape[p.axis :], scale, shift, _EPSILON, outputs=[result, rows, rows],
            weights=places,
        )  # fmt: skip
    if p.op == "rms":
        return _aten.build(
            "rms_norm", x, p.shape[p.axis :], scale, _EPSILON, outputs=[result], weights=places
        )  # fmt: skip
    if p.op == "group":
        size = math.prod(p.shape[2:])
        rows = TensorSpec((p.shape[0], p.groups), p.dtype)
        return _aten.build(
            "native_group_norm", x, scale, shift, p.shape[0], p.channels, size, p.groups, _EPSILON,
            outputs=[result, rows, rows], weights=places,
        )  # fmt: skip
    if p.op in {"batch", "batch-training"}:
        training = p.op == "batch-training"
        kept = TensorSpec((p.channels if training else 0,), p.dtype)
        return _aten.build(
            "native_batch_norm", x, scale, shift, vector, vector, training, 0.1, _EPSILON,
            outputs=[result, kept, kept], weights=(*places, 1 + len(places), 2 + len(places)),
        )  # fmt: skip
    return None
