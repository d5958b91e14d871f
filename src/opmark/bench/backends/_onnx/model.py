"""Models of one ONNX node in several copies: a chain, parallel copies, or copies that share nothing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from opmark.bench.backends._onnx.buffers import KeptMemory
from opmark.core.errors import MeasurementError
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec

# Operators that only change the shape of a tensor: the next copy can restore it.
VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_OPSETS = {"": 20, "com.microsoft": 1, "com.microsoft.nchwc": 1, "ai.onnx.ml": 3}
_IR_VERSION = 10
# The node that reads the last view.
END = "end"
_POOL_ELEMENTS = 1 << 16
# Integers and flags that are drawn and then repeated. `where` takes a third less time over 2^16 repeated flags: a
# processor learns so many by heart.
_DRAWN_INTEGERS = 1 << 22
_INLINE_BYTES = 1 << 16
# Bound tensors lie as those inside a network do: with vectors that cross lines, blocked kernels take up to a third
# longer (decision 0070).
TENSOR_MEMORY = KeptMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacked:
    """A serialised model with its large constants, its input arrays and its outputs by name."""

    model: bytes
    constants: Mapping[str, Any]
    feeds: Mapping[str, Any]
    outputs: Mapping[str, TensorSpec]
    copies: int


def chain_input(node: OnnxNode) -> int | None:
    """The index of the input that the previous copy can feed, or None.

    It is an activation with the shape and type of the output, or the input of a view.
    """
    first = node.outputs[0]
    for index, operand in enumerate(node.inputs):
        if operand is not None and not operand.constant and operand.spec == first:
            return index
    return 0 if _is_view(node) else None


def stack(node: OnnxNode, *, copies: int, chain: bool, rotated: bool, added: bool = False) -> Stacked:
    """Build one model of `copies` of `node`, each with its own weights.

    A chain passes its first output on. Otherwise all copies read the same activations or, with `rotated`, their own;
    with `added`, only the sum of their first outputs leaves the model. Raises `MeasurementError` if numpy lacks the
    type of a tensor, or if the node cannot be chained.
    """
    builder = ModelBuilder(node)
    link = chain_input(node) if chain else None
    if chain and link is None:
        raise MeasurementError(f"{node.op_type} cannot be chained: no input has the shape and type of its output")
    previous = ""
    for copy in range(copies):
        if chain and _is_view(node) and copy % 2:
            previous = builder.add_reverse(copy, previous)
            continue
        replaced: dict[int, str] = {link: previous} if link is not None and copy else {}
        last = not (chain or added) or (chain and copy == copies - 1 and not _is_view(node))
        made = builder.add(copy, replaced, own_activations=rotated, last=last)[0]
        previous = builder.add_sum(copy, previous, made, last=copy == copies - 1) if added and copy else made
    if chain and _is_view(node):
        builder.add_end(previous)
    return builder.model({**_OPSETS, "": node.opset}, copies=copies)


class ModelBuilder:
    """The parts of a model while copies are added."""

    def __init__(self, node: OnnxNode) -> None:
        self._node = node
        self._random = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.graph_inputs: list[Any] = []
        self.graph_outputs: list[Any] = []
        self.initializers: list[Any] = []
        self._named: set[str] = set()
        self.constants: dict[str, Any] = {}
        self.feeds: dict[str, Any] = {}
        self.outputs: dict[str, TensorSpec] = {}

    def add(self, copy: int, replaced: Mapping[int, str], *, own_activations: bool, last: bool) -> list[str]:
        """Add a copy and return the names of its outputs; unless `last`, the first one stays inside the model."""
        from onnx import helper

        names = []
        for index, operand in enumerate(self._node.inputs):
            if operand is None:
                names.append("")
            elif index in replaced:
                names.append(replaced[index])
            elif operand.constant:
                # Copies share the constants that control the kernel, and not their weights.
                steering = operand.value is not None
                names.append(self._initializer(f"c{index}" if steering else f"w{index}_{copy}", operand))
            else:
                names.append(self._feed(f"x{index}_{copy}" if own_activations else f"x{index}", operand))
        outputs = [f"y{index}_{copy}" if spec is not None else "" for index, spec in enumerate(self._node.outputs)]
        node = helper.make_node(self._node.op_type, names, outputs, name=f"copy{copy}", domain=self._node.domain)
        node.attribute.extend(
            helper.make_attribute(name, *_attribute(value)) for name, value in sorted(self._node.attributes.items())
        )
        self.nodes.append(node)
        for index, (name, spec) in enumerate(zip(outputs, self._node.outputs, strict=True)):
            if spec is not None and (last or index > 0):
                self._output(name, spec)
        return outputs

    def add_reverse(self, copy: int, previous: str) -> str:
        """Add a copy that restores the first shape of the tensor."""
        from onnx import helper

        operand = self._node.inputs[0]
        assert operand is not None
        values = tuple(operand.spec.shape)
        shape = Operand(spec=TensorSpec((len(values),), "int64"), constant=True, value=values)
        output = f"y0_{copy}"
        self.nodes.append(
            helper.make_node("Reshape", [previous, self._initializer("back", shape)], [output], name=f"copy{copy}")
        )
        return output

    def add_sum(self, copy: int, total: str, more: str, *, last: bool) -> str:
        """Add two outputs, and return the name of their sum; the `last` one leaves the model."""
        from onnx import helper

        spec, name = self._node.outputs[0], f"sum{copy}"
        assert spec is not None
        self.nodes.append(helper.make_node("Add", [total, more], [name], name=f"{name}/add"))
        if last:
            self._output(name, spec)
        return name

    def add_end(self, previous: str) -> None:
        """Let only the shape leave the model: the runtime would copy a view that leaves it."""
        from onnx import helper

        self.nodes.append(helper.make_node("Shape", [previous], ["end"], name=END, start=0, end=1))
        self._output("end", TensorSpec((1,), "int64"))

    def model(self, opsets: Mapping[str, int], *, copies: int) -> Stacked:
        """The model of everything added so far, with `opsets` by domain."""
        from onnx import helper

        graph = helper.make_graph(
            self.nodes, "kernel", self.graph_inputs, self.graph_outputs, initializer=self.initializers
        )
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
            ir_version=_IR_VERSION,
        )
        return Stacked(
            model=made.SerializeToString(),
            constants=self.constants,
            feeds=self.feeds,
            outputs=self.outputs,
            copies=copies,
        )

    def _output(self, name: str, spec: TensorSpec) -> None:
        from onnx import helper

        self.outputs[name] = spec
        self.graph_outputs.append(helper.make_tensor_value_info(name, element_type(spec.dtype), spec.shape))

    def _feed(self, name: str, operand: Operand) -> str:
        from onnx import helper

        if name not in self.feeds:
            self.feeds[name] = self._values(operand)
            spec = operand.spec
            self.graph_inputs.append(helper.make_tensor_value_info(name, element_type(spec.dtype), spec.shape))
        return name

    def _initializer(self, name: str, operand: Operand) -> str:
        from onnx import TensorProto

        if name in self._named:
            return name
        self._named.add(name)
        tensor = TensorProto(name=name, data_type=element_type(operand.spec.dtype), dims=operand.spec.shape)
        values = np.ascontiguousarray(self._values(operand))
        if operand.spec.size_bytes > _INLINE_BYTES:
            # Passed to the runtime in memory: a model of this size would take long to serialise and parse.
            self.constants[name] = values
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=name)
        else:
            tensor.raw_data = values.tobytes()
        self.initializers.append(tensor)
        return name

    def _values(self, operand: Operand) -> Any:
        """An array for `operand`: its given elements, valid indices, or numbers of normal size."""
        spec = operand.spec
        dtype = numpy_type(spec.dtype)
        if operand.value is not None:
            return TENSOR_MEMORY.copied(np.array(operand.value, dtype=dtype).reshape(spec.shape))
        if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
            if operand.limit is not None:
                return TENSOR_MEMORY.copied(
                    self._random.integers(0, max(1, operand.limit), size=spec.shape).astype(dtype)
                )
            drawn = _integers(dtype)
            size = min(spec.elements, _DRAWN_INTEGERS)
            start = int(self._random.integers(0, _DRAWN_INTEGERS - size + 1))
            return _repeated(drawn[start : start + size], spec)
        start = int(self._random.integers(0, _POOL_ELEMENTS))
        fan_in = spec.elements // max(1, spec.shape[0]) if operand.constant and spec.shape else 1
        pool = _magnitudes(max(1, fan_in))[start : start + min(spec.elements, _POOL_ELEMENTS)]
        return _repeated(pool.astype(dtype, copy=False), spec)


# The weights and activations of one kernel, and those of the next.
@lru_cache(maxsize=8)
def _magnitudes(fan_in: int) -> Any:
    """Positive numbers to fill tensors with, each of them twice; those of weights are small where many are added up.

    Positive numbers are valid for roots and logarithms, and keep the products of a long chain away from denormal
    numbers, which are slow on some processors.
    """
    normal = np.random.default_rng(0).standard_normal(_POOL_ELEMENTS).astype(np.float32)
    return np.tile((np.abs(normal) + np.float32(0.1)) / np.float32(math.sqrt(fan_in)), 2)


@cache
def _integers(dtype: Any) -> Any:
    """Flags, or integers below eight, to fill tensors with: drawing takes ten times as long as copying."""
    return np.random.default_rng(0).integers(0, 2 if dtype == np.bool_ else 8, size=_DRAWN_INTEGERS, dtype=dtype)


def _repeated(pool: Any, spec: TensorSpec) -> Any:
    """`pool` again and again in a tensor; `numpy.resize` takes three times as long."""
    filled = TENSOR_MEMORY.take((spec.elements,), pool.dtype)
    whole = len(filled) // len(pool) * len(pool) if len(pool) else 0
    filled[:whole].reshape(-1, max(1, len(pool)))[:] = pool
    filled[whole:] = pool[: len(filled) - whole]
    return filled.reshape(spec.shape)


def numpy_type(name: str) -> Any:
    """The numpy type called `name`. Raises `MeasurementError` for one that numpy lacks."""
    try:
        return np.dtype(name)
    except TypeError:
        raise MeasurementError(f"numpy has no element type {name}") from None


def element_type(name: str) -> int:
    """The ONNX number of the element type `name`."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(numpy_type(name)))


def _attribute(value: Any) -> tuple[Any, ...]:
    return (list(value),) if isinstance(value, tuple) else (value,)


def _is_view(node: OnnxNode) -> bool:
    return node.domain == "" and node.op_type in VIEWS


def example_array(name: str, shape: Sequence[int], dtype: Any, random: np.random.Generator) -> Any:
    """Numbers for a network's input: normal ones, small tokens, or ones for a mask, which then keeps everything."""
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(tuple(shape)).astype(dtype)
    drawn = np.ones(tuple(shape), dtype=dtype) if "mask" in name else random.integers(0, 2, tuple(shape))
    return np.ascontiguousarray(drawn.astype(dtype))
