"""A network of ONNX Runtime in parts: each part is one session, cut from the optimised graph."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opmark.bench.backends._onnx.alignment import align
from opmark.bench.backends._onnx.buffers import BufferPool, aligned_bytes
from opmark.bench.backends._onnx.model import element_type, example_array, numpy_type
from opmark.bench.worker.divided import Fingerprint, NamedKernel, NetworkPart, Survey, fingerprint
from opmark.core.errors import MeasurementError
from opmark.core.kernels.tensor import TensorSpec
from opmark.models.onnx_file import OnnxFile, constant_names

if TYPE_CHECKING:
    import onnx

_NCHWC = "com.microsoft.nchwc"
_OUT, _IN = "ReorderOutput", "ReorderInput"
_WEIGHTS = "weights.bin"
# Smaller constants stay in the model: ONNX Runtime reads some of their values when it builds a session.
_INSIDE_BYTES = 1024
# The name of a tensor in its plain layout.
_PLAIN = "/plain"


class Sessions(Protocol):
    """The sessions of this process, with the threads and settings of its target."""

    def save_optimised(self, file: OnnxFile, path: Path, *, weights: str, inside_bytes: int) -> None:
        """Write the optimised graph of `file` to `path`, its constants above `inside_bytes` to the file `weights`."""

    def open_part(self, model: bytes, constants: Mapping[str, Any]) -> Any:
        """A session of `model` as it is, without further optimisation."""

    def bound(self, session: Any, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
        """`session` with these arrays as its memory; `call` runs it."""


class OptimisedNetwork:
    """The optimised graph of a file; `sessions` opens models with the settings of this process."""

    def __init__(self, file: OnnxFile, example: Sequence[Any] | None, sessions: Sessions) -> None:
        from opmark.models.capture.onnx_session import tensor_specs

        self._sessions = sessions
        self._model, self._weights = _optimised(file, sessions)
        graph = self._model.graph
        self._specs: Mapping[str, TensorSpec] = tensor_specs(self._model, where=str(file.path))
        self._constants = {item.name: item for item in graph.initializer}
        self._blocked = _blocked(graph)
        self._plain = _plain_specs(file.model, graph, self._blocked, self._specs)
        given = constant_names(file.model.graph)
        self.inputs = tuple(item.name for item in graph.input if item.name not in given)
        self.outputs = tuple(item.name for item in graph.output)
        self._example = example
        # The memory of every tensor that crosses the border of a part, in the layout of its readers here.
        self._memory: dict[str, Any] = {}
        self._shared: Mapping[str, Any] = {}
        self._parts: list[Any] = []
        self._pool = BufferPool()

    def adopt(self, kernels: Sequence[NamedKernel], inputs: Sequence[str]) -> None:
        """Rename the nodes and tensors of the graph."""
        if self.inputs != tuple(inputs):
            raise MeasurementError(f"the network has the inputs {', '.join(self.inputs)} here")
        names = align(self._model.graph, kernels)
        self._specs = {names.get(name, name): spec for name, spec in self._specs.items()}
        self._plain = {names.get(name, name): spec for name, spec in self._plain.items()}
        self._weights = {names[name]: values for name, values in self._weights.items()}
        self._constants = {item.name: item for item in self._model.graph.initializer}
        self._blocked = _blocked(self._model.graph)
        self.outputs = tuple(item.name for item in self._model.graph.output)

    def example(self) -> tuple[Any, ...]:
        """One array per input: those of the caller, else the usual numbers of a measured network."""
        if self._example is not None:
            return tuple(_in_shape(self._example, [self._specs[name].shape for name in self.inputs]))
        random = np.random.default_rng(0)
        return tuple(
            example_array(name, self._specs[name].shape, numpy_type(self._specs[name].dtype), random)
            for name in self.inputs
        )

    def survey(self, feeds: Sequence[Any], tensors: Sequence[str]) -> Survey:
        """Run the whole optimised graph with `tensors` as further outputs."""
        known = {name for node in self._model.graph.node for name in node.output}
        wanted = [name for name in dict.fromkeys(tensors) if name in known]
        sends = tuple(dict.fromkeys((*self.outputs, *wanted)))
        part = NetworkPart(kernels=tuple(range(len(self._model.graph.node))), sends=sends)
        model = self._cut(part, later=frozenset())
        session = self._sessions.open_part(model.SerializeToString(), self._used(model))
        names = [item.name for item in session.get_outputs()]
        found = dict(zip(names, session.run(None, dict(zip(self.inputs, feeds, strict=True))), strict=True))
        prints: dict[str, Fingerprint] = {name: fingerprint(found[self._plain_name(name)]) for name in wanted}
        prints |= {name: fingerprint(feed) for name, feed in zip(self.inputs, feeds, strict=True)}
        return Survey(outputs=tuple(found[self._plain_name(name)] for name in self.outputs), tensors=prints)

    def size_bytes(self, tensor: str) -> int:
        """The bytes of `tensor`."""
        return self._spec(self._plain_name(tensor)).size_bytes

    def divide(self, parts: Sequence[NetworkPart], shared: Mapping[str, Any], feeds: Mapping[str, Any]) -> None:
        """One session per part, bound to its memory."""
        self._shared, self._memory, self._parts, self._pool = shared, {}, [], BufferPool()
        for name, array in feeds.items():
            self._memory[name] = np.ascontiguousarray(array)
        sessions = list(self._sessions_of(parts))
        reads = [[item.name for item in session.get_inputs()] if session is not None else [] for session in sessions]
        last = self._last_readers(sessions, reads)
        for number, (part, session) in enumerate(zip(parts, sessions, strict=True)):
            # A received tensor arrives in its plain layout, also where no kernel of this part reads it yet.
            for name in map(self._plain_name, part.receives):
                self._memory[name] = self._empty(name)
            self._parts.append(self._bound(session, part) if session is not None else None)
            for name in reads[number]:
                if last.get(name) == number:
                    self._pool.release(name)

    def _last_readers(self, sessions: Sequence[Any], reads: Sequence[Sequence[str]]) -> dict[str, int]:
        """The last part that reads each tensor; without outputs of the graph and what several parts make."""
        made = Counter(item.name for session in sessions if session is not None for item in session.get_outputs())
        kept = {*self.outputs, *map(self._plain_name, self.outputs)}
        return {
            name: number for number, names in enumerate(reads) for name in names if name not in kept and made[name] <= 1
        }

    def _sessions_of(self, parts: Sequence[NetworkPart]) -> Iterator[Any]:
        """The session of each part, None where it has no kernel."""
        for number, part in enumerate(parts):
            if not part.kernels:
                yield None
                continue
            elsewhere = {kernel for other in (*parts[:number], *parts[number + 1 :]) for kernel in other.kernels}
            model = self._cut(part, later=self._read_by(elsewhere))
            yield self._sessions.open_part(model.SerializeToString(), self._used(model))

    def run(self, part: int) -> None:
        """Run the session."""
        session = self._parts[part]
        if session is not None:
            session.call()

    def accept(self, tensor: str) -> None:
        """Copy the bytes; a session turns them into its own layout."""
        name = self._plain_name(tensor)
        np.copyto(self._memory[name], self._view(tensor, name))

    def publish(self, tensor: str) -> None:
        """Nothing for the result of a session, which wrote it to the shared bytes; a graph input is copied there."""
        memory = self._memory.get(tensor)
        if tensor in self.inputs and memory is not None:
            np.copyto(self._view(tensor, tensor), memory)

    def value(self, tensor: str) -> Any:
        """A copy of the plain array."""
        name = self._plain_name(tensor)
        memory = self._memory.get(name, self._memory.get(tensor))
        if memory is None:
            raise MeasurementError(f"{tensor!r} is not on this device")
        return np.array(memory)

    def _plain_name(self, tensor: str) -> str:
        return f"{tensor}{_PLAIN}" if tensor in self._blocked else tensor

    def _spec(self, name: str) -> TensorSpec:
        """The spec of a tensor, or of its plain layout under its plain name."""
        return self._plain[name.removesuffix(_PLAIN)] if name.endswith(_PLAIN) else self._specs[name]

    def _empty(self, name: str) -> Any:
        spec = self._spec(name)
        return self._pool.take(name, spec.shape, numpy_type(spec.dtype))

    def _view(self, tensor: str, name: str) -> Any:
        """The shared bytes of `tensor` as the array `name`."""
        spec = self._spec(name)
        return self._shared[tensor][: spec.size_bytes].view(numpy_type(spec.dtype)).reshape(spec.shape)

    def _read_by(self, kernels: set[int]) -> frozenset[str]:
        return frozenset(name for kernel in kernels for name in self._model.graph.node[kernel].input)

    def _bound(self, session: Any, part: NetworkPart) -> Any:
        """`session` with the memory of its inputs and outputs; what is sent lies in the shared bytes."""
        sent = {self._plain_name(name): name for name in part.sends}
        outputs = {}
        for item in session.get_outputs():
            name = item.name
            if name not in self._memory:
                self._memory[name] = self._view(sent[name], name) if name in sent else self._empty(name)
            outputs[name] = self._memory[name]
        missing = [item.name for item in session.get_inputs() if item.name not in self._memory]
        if missing:
            raise MeasurementError(f"nothing on this device makes {missing[0]!r} before it is read")
        feeds = {item.name: self._memory[item.name] for item in session.get_inputs()}
        return self._sessions.bound(session, feeds, outputs)

    def _used(self, model: "onnx.ModelProto") -> Mapping[str, Any]:
        names = (item.name for item in model.graph.initializer)
        return {name: self._weights[name] for name in names if name in self._weights}

    def _cut(self, part: NetworkPart, *, later: frozenset[str]) -> "onnx.ModelProto":
        """A model of the kernels of `part`, with reorders where a blocked tensor is received or sent."""
        from onnx import helper

        chosen = [self._model.graph.node[number] for number in sorted(part.kernels)]
        made = {name for node in chosen for name in node.output if name}
        reads = list(dict.fromkeys(name for node in chosen for name in node.input if name))
        constants = [self._constants[name] for name in reads if name in self._constants]
        outside = [name for name in reads if name not in made and name not in self._constants]
        # A blocked tensor is turned once, also for the parts that read it later.
        opened = [name for name in part.receives if name in self._blocked and (name in outside or name in later)]
        before = [self._reorder(_IN, name) for name in opened]
        after = [self._reorder(_OUT, name) for name in part.sends if name in made and name in self._blocked]
        inputs = [self._plain_name(name) for name in opened] + [name for name in outside if name not in opened]
        sent = [self._plain_name(name) for name in part.sends if name in made]
        kept = [name for name in opened if name in later]
        kept += [name for node in chosen for name in node.output if name in later or name in self.outputs]
        outputs = dict.fromkeys(
            (*sent, *(name for name in kept if self._plain_name(name) not in sent or name in later))
        )
        graph = helper.make_graph(
            [*before, *chosen, *after],
            "part",
            [self._described(name) for name in inputs],
            [self._described(name) for name in outputs],
            initializer=constants,
        )
        model: onnx.ModelProto = helper.make_model(
            graph, opset_imports=list(self._model.opset_import), ir_version=self._model.ir_version
        )
        return model

    def _described(self, name: str) -> Any:
        from onnx import helper

        spec = self._spec(name)
        return helper.make_tensor_value_info(name, element_type(spec.dtype), spec.shape)

    def _reorder(self, operator: str, name: str) -> Any:
        from onnx import helper

        plain = f"{name}{_PLAIN}"
        if operator == _IN:
            return helper.make_node(_IN, [plain], [name], name=f"{name}/in", domain=_NCHWC)
        channels = self._plain[name].shape[1]
        return helper.make_node(_OUT, [name], [plain], name=f"{name}/out", domain=_NCHWC, channels=channels)


def _optimised(file: OnnxFile, sessions: Sessions) -> "tuple[onnx.ModelProto, dict[str, Any]]":
    """The optimised graph as the capture sees it, and its large weights as arrays."""
    import onnx

    with tempfile.TemporaryDirectory(prefix="opmark-") as folder:
        path = Path(folder, "model.onnx")
        sessions.save_optimised(file, path, weights=_WEIGHTS, inside_bytes=_INSIDE_BYTES)
        model = onnx.load(path, load_external_data=False)
        weights = dict(_read_weights(model, Path(folder)))
    return model, weights


def _read_weights(model: "onnx.ModelProto", folder: Path) -> Iterator[tuple[str, Any]]:
    from opmark.kinds._onnx.nodes import DTYPES

    for item in model.graph.initializer:
        if not item.external_data:
            continue
        entries = {entry.key: entry.value for entry in item.external_data}
        dtype = numpy_type(DTYPES[item.data_type])
        count = int(entries["length"]) // dtype.itemsize
        values = aligned_bytes(count * dtype.itemsize).view(dtype)
        values[:] = np.fromfile(
            folder / entries["location"], dtype=dtype, count=count, offset=int(entries.get("offset", "0"))
        )
        yield item.name, values.reshape(tuple(item.dims))


def _blocked(graph: "onnx.GraphProto") -> frozenset[str]:
    """The tensors in the blocked layout of channels: what its kernels make, and what others make of that."""
    found: set[str] = set()
    for node in graph.node:
        if node.op_type == _OUT and node.domain == _NCHWC:
            continue
        if node.domain == _NCHWC or any(name in found for name in node.input):
            found.update(name for name in node.output if name)
    return frozenset(found)


def _in_shape(arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Iterator[Any]:
    """The arrays of these shapes, in order: an export leaves out the inputs that nothing reads."""
    left = list(arrays)
    for shape in shapes:
        place = next((place for place, array in enumerate(left) if array.shape == shape), None)
        if place is None:
            raise MeasurementError(f"the module has no input of shape {shape}, but its ONNX file has")
        yield left.pop(place)


def _plain_specs(
    original: "onnx.ModelProto", graph: "onnx.GraphProto", blocked: frozenset[str], specs: Mapping[str, TensorSpec]
) -> dict[str, TensorSpec]:
    """The plain shapes of blocked tensors, whose channels may be padded to whole blocks.

    A blocked kernel is called after its original output, which has the real number of channels.
    """
    import onnx

    known = {item.name: item.type for item in (*original.graph.value_info, *original.graph.output)}
    if not known.keys() - {item.name for item in original.graph.output}:
        inferred = onnx.shape_inference.infer_shapes(original)
        known |= {item.name: item.type for item in inferred.graph.value_info}
    channels: dict[str, int] = {}
    for node in graph.node:
        name = node.name.removesuffix("_nchwc")
        if name != node.name and name in known:
            sizes = known[name].tensor_type.shape.dim
            if len(sizes) > 1 and sizes[1].dim_value:
                channels[node.output[0]] = sizes[1].dim_value
        elif node.output and node.output[0] in blocked:
            # Kernels in between keep the channels of what they read.
            alike = [one for one in node.input if one in channels and specs[one].shape == specs[node.output[0]].shape]
            if alike:
                channels[node.output[0]] = channels[alike[0]]
    found = {}
    for name in blocked:
        shape = specs[name].shape
        found[name] = TensorSpec((*shape[:1], channels.get(name, shape[1]), *shape[2:]), specs[name].dtype)
    return found
