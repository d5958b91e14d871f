"""Recurrent layers that a runtime runs as one kernel: LSTM, GRU and the plain cell, one or both directions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import build, data, present, weight
from opmark.kinds._shared.shapes import code, scaled, size_bytes

_ONNX = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}
_FROM_ONNX = {name: cell for cell, name in _ONNX.items()}
# Append only: a learner's category codes are the places in this list.
CELLS = tuple(_ONNX)
_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
# The one recurrent layer that eager torch runs as a single kernel (oneDNN); its mode 2 is the LSTM, and other cells are
# products and activations step by step.
_ATEN, _ATEN_LSTM = "mkldnn_rnn_layer", 2
_PER_UNIT_FLOPS = {"lstm": 45, "gru": 30, "rnn": 9}  # a transcendental counts as 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """A layer over [length, batch, inputs]; `directions` is 1 or 2.

    `outputs` are the places of the requested results (all steps, last state, last memory); with `initial` the first
    state is given; `reset_after` is the GRU whose reset gate acts after the product.
    """

    cell: str
    length: int
    batch: int
    inputs: int
    hidden: int
    directions: int = 1
    bias: bool = True
    initial: bool = False
    reset_after: bool = False
    outputs: tuple[int, ...] = (0,)
    dtype: str = "float32"

    @property
    def gates(self) -> int:
        """Products per step and unit."""
        return _GATES[self.cell]

    @property
    def results(self) -> tuple[tuple[int, ...], ...]:
        """Shape of every possible result."""
        state = (self.directions, self.batch, self.hidden)
        return (
            (self.length, self.directions, self.batch, self.hidden),
            *((state,) * (2 if self.cell == "lstm" else 1)),
        )


class RecurrentKind(Kind[Recurrent]):
    """Recurrent layer."""

    name = "recurrent"
    parameters = Recurrent
    matrix = True
    most_flops = 3_000_000_000
    categories = ("cell",)
    onnx_ops = frozenset(_FROM_ONNX)
    aten_ops = frozenset({_ATEN})
    space = {
        "cell": Choice(("lstm", "lstm", "gru", "rnn")),
        "length": Range(1, 256),
        "batch": Choice((1, 1, 1, 4, 16)),
        "inputs": Range(16, 1024, 8),
        "hidden": Range(16, 1024, 8),
        "directions": Choice((1, 1, 2)),
        "initial": Choice((False, True)),
    }

    def work(self, p: Recurrent) -> Work:
        wide = p.directions * p.gates * p.hidden
        constants = wide * (p.inputs + p.hidden + (2 if p.bias else 0))
        state = size_bytes((p.directions, p.batch, p.hidden), p.dtype) * (2 if p.cell == "lstm" else 1)
        steps = p.length * p.batch
        weight_bytes = size_bytes((constants,), p.dtype)
        return Work(
            flops=steps * (2 * wide * (p.inputs + p.hidden) + p.directions * p.hidden * _PER_UNIT_FLOPS[p.cell]),
            read_bytes=size_bytes((steps, p.inputs), p.dtype) + weight_bytes + (state if p.initial else 0),
            written_bytes=sum(size_bytes(p.results[place], p.dtype) for place in p.outputs),
            weight_bytes=weight_bytes,
        )

    def features(self, p: Recurrent) -> dict[str, float]:
        return {
            "cell": code(p.cell, CELLS),
            "length": p.length,
            "batch": p.batch,
            "inputs": p.inputs,
            "hidden": p.hidden,
            "gate_width": p.gates * p.hidden,
            "directions": p.directions,
            "bias": float(p.bias),
            "initial": float(p.initial),
            "results": len(p.outputs),
        }

    def shape_group(self, p: Recurrent) -> str:
        return f"{p.cell}-{p.length}-{p.batch}-{p.directions}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Recurrent | None:
        if setting.language == "aten":
            if values["cell"] != "lstm" or setting.dtype not in {"float32", "bfloat16"}:
                return None
            one_way = {**values, "directions": 1, "initial": True, "outputs": (0, 1, 2)}
            return self.within_limits(Recurrent(**one_way, dtype=setting.dtype))
        if setting.dtype not in {"float32", "float64"}:
            return None
        p = Recurrent(**values, reset_after=values["cell"] == "gru", dtype=setting.dtype)
        return self.within_limits(p)

    def vary(self, p: Recurrent, width: float, extent: float) -> Recurrent:
        return replace(
            p,
            length=p.length if p.length == 1 else scaled(p.length, extent),
            inputs=scaled(p.inputs, width),
            hidden=scaled(p.hidden, width),
        )

    def from_onnx(self, node: OnnxNode) -> Recurrent | None:
        x, recurrence, get = present(node, 0), present(node, 2), node.attributes.get
        # Lengths per sequence, peepholes, or a batch-first layout make another kernel.
        if x is None or recurrence is None or present(node, 4) or present(node, 7) or get("layout", 0):
            return None
        length, batch, inputs = x.spec.shape
        return Recurrent(
            cell=_FROM_ONNX[node.op_type],
            length=length,
            batch=batch,
            inputs=inputs,
            hidden=recurrence.spec.shape[-1],
            directions=recurrence.spec.shape[0],
            bias=present(node, 3) is not None,
            initial=present(node, 5) is not None,
            reset_after=bool(get("linear_before_reset", 0)),
            outputs=tuple(place for place, spec in enumerate(node.outputs) if spec is not None),
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: Recurrent) -> OnnxNode | None:
        wide = p.gates * p.hidden
        state = data((p.directions, p.batch, p.hidden), p.dtype) if p.initial else None
        inputs: list[Operand | None] = [
            data((p.length, p.batch, p.inputs), p.dtype),
            weight((p.directions, wide, p.inputs), p.dtype),
            weight((p.directions, wide, p.hidden), p.dtype),
            weight((p.directions, 2 * wide), p.dtype) if p.bias else None,
            None,
            state,
        ]
        if p.cell == "lstm":
            inputs.append(state)
        attributes: dict[str, Any] = {
            "hidden_size": p.hidden,
            "direction": "bidirectional" if p.directions == 2 else "forward",
        }
        if p.cell == "gru":
            attributes["linear_before_reset"] = int(p.reset_after)
        outputs = [
            TensorSpec(p.results[place], p.dtype) if place in p.outputs else None
            for place in range(max(p.outputs, default=0) + 1)
        ]
        return build(_ONNX[p.cell], inputs, outputs, attributes)

    def from_aten(self, call: AtenCall) -> Recurrent | None:
        x, recurrence = calls.tensor(call, 0), calls.tensor(call, 2)
        lengths, mode = calls.argument(call, 8), calls.argument(call, 9)
        # A call is one layer in one direction; sequences of several lengths make another kernel.
        if x is None or recurrence is None or lengths or mode != _ATEN_LSTM or len(x.shape) != 3:
            return None
        length, batch, inputs = x.shape
        return Recurrent(
            cell="lstm",
            length=length,
            batch=batch,
            inputs=inputs,
            hidden=recurrence.shape[-1],
            bias=bool(calls.argument(call, 12)),
            initial=True,
            outputs=(0, 1, 2),
            dtype=x.dtype,
        )

    def to_aten(self, p: Recurrent) -> AtenCall | None:
        if p.cell != "lstm" or p.directions != 1 or not p.initial or p.outputs != (0, 1, 2):
            return None
        wide = p.gates * p.hidden
        weights = (TensorSpec((wide, p.inputs), p.dtype), TensorSpec((wide, p.hidden), p.dtype))
        bias, state = TensorSpec((wide,), p.dtype), TensorSpec((1, p.batch, p.hidden), p.dtype)
        # Neither backwards nor for training: lengths, mode, size, layers, bias, directions, batch first, training.
        settings = (False, (), _ATEN_LSTM, p.hidden, 1, p.bias, False, False, False)
        return calls.build(
            _ATEN,
            TensorSpec((p.length, p.batch, p.inputs), p.dtype),
            *(*weights, bias, bias, state, state),
            *settings,
            outputs=[TensorSpec((p.length, p.batch, p.hidden), p.dtype), state, state],
            weights=(1, 2, 3, 4),
        )


KIND = RecurrentKind()
