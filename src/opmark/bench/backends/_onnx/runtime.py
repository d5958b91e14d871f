"""ONNX Runtime in any build: single kernels without optimisation, whole networks with all, buffers bound once."""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opmark.bench.backends._onnx.bound_session import BoundSession
from opmark.bench.backends._onnx.divided import OptimisedNetwork
from opmark.bench.backends._onnx.model import (
    END,
    TENSOR_MEMORY,
    Stacked,
    chain_input,
    example_array,
    numpy_type,
    stack,
)
from opmark.bench.backends._onnx.sequence import pieces, sequence
from opmark.bench.worker.backend import CHAIN, PARALLEL, SUM, Backend, Piece, Prepared
from opmark.bench.worker.calls import call_in
from opmark.bench.worker.divided import DividedNetwork
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.measurements.environment import Fact

if TYPE_CHECKING:
    from opmark.models.onnx_file import OnnxFile

_SUFFIX = "ExecutionProvider"
# Providers on other machines, or unable to run single kernels.
_NOT_MEASURED = frozenset({"Azure"})
_DEVICE_MEMORY = {"cuda": "cuda", "tensorrt": "cuda"}
_WEIGHTS = "weights.bin"
_ELEMENT_TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    **{f"tensor({name})": name for name in ("int64", "int32", "int16", "int8", "uint8", "uint16", "bool")},
}


# The configuration of every session in this process. Under real-time priority, a spinning thread would occupy its
# processor.
_entries = {"session.intra_op.allow_spinning": "0"}
# Execution providers that stand for a provider of a target in this process, with their options.
_substitutes: dict[str, tuple[str, Mapping[str, str]]] = {}


class OnnxRuntime(Backend):
    """ONNX Runtime and every provider of the installed build."""

    name: ClassVar[str] = "onnxruntime"
    language: ClassVar[str] = "onnx"
    # The runtime writes the graph that it runs: copies that it drops or merges are noticed. Otherwise each copy that is
    # not part of a chain reads its own inputs, so that no two copies are the same.
    shows_kernels: ClassVar[bool] = True

    def unavailable(self) -> str | None:
        """The reason why it cannot be used, or None."""
        try:
            import onnx  # noqa: F401
            import onnxruntime  # noqa: F401
        except ImportError as error:
            return f"{error.name} is not installed"
        return None

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """One target per provider and number of threads."""
        return tuple(
            Target(device=device, backend=self.name, provider=provider, threads=count, version=_version())
            for provider in _providers()
            for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """The version, the providers, and the treatment of denormal numbers."""
        import onnxruntime

        return {"version": onnxruntime.__version__, "providers": " ".join(_providers()), "denormals": "zero"}

    def start(self, target: Target) -> None:
        """Treat denormal numbers as zero, as torch does; the first session decides for the whole process."""
        _entries["session.set_denormal_as_zero"] = "1"
        self.prepare_empty(target, copies=1).close()

    def construction(self, kernel: Kernel) -> str:
        """A chain if some activation has the shape and type of the output."""
        return CHAIN if chain_input(node_of(kernel)) is not None else PARALLEL

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """One model of all copies, without optimisation."""
        node = node_of(kernel)
        chain, added = construction == CHAIN, construction == SUM and copies > 1
        own_inputs = rotated or not (chain or added or self.shows_kernels)
        stacked = stack(node, copies=copies, chain=chain, added=added, rotated=own_inputs)
        try:
            check = _signature(node) if self.shows_kernels else None
            return _bound(stacked, target, own_outputs=rotated, check=check)
        except _runtime_errors() as error:
            raise MeasurementError(f"ONNX Runtime refuses it: {_first_line(error)}") from error

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of ReLUs on sixteen elements."""
        spec = TensorSpec((16,))
        node = OnnxNode(op_type="Relu", inputs=(Operand(spec=spec),), outputs=(spec,))
        return _bound(stack(node, copies=copies, chain=True, rotated=False), target, own_outputs=False, check=None)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The optimised file, as users run it; a network of the zoo is exported first."""
        from opmark.models.resolve import onnx_file
        from opmark.models.source import source_of

        path, source = onnx_file(model, dimensions=dimensions), source_of(model)
        if not source.is_onnx or source.variant:
            dimensions = {}
        options = _options(target, optimise=True)
        for name, size in dimensions.items():
            options.add_free_dimension_override_by_name(name, size)
        try:
            session = _open(str(path), options, target, fallback=True)
            return BoundSession(
                session, _network_feeds(session), {item.name: None for item in session.get_outputs()}, 1
            )
        except _runtime_errors() as error:
            raise MeasurementError(f"ONNX Runtime cannot run {path.name}: {_first_line(error)}") from error

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """One model of all kernels, with all optimisations."""
        stacked = sequence([node_of(kernel) for kernel in kernels])
        try:
            session = _open(stacked.model, _options(target, optimise=True), target, fallback=False)
            return _with_buffers(session, stacked, target, own_outputs=True)
        except _runtime_errors() as error:
            raise MeasurementError(f"ONNX Runtime refuses it: {_first_line(error)}") from error

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """The nodes of the optimised graph."""
        if target.provider != "cpu":
            raise UnavailableError(f"{target.name}: graphs are captured with the CPU provider only")
        return pieces([node_of(kernel) for kernel in kernels], threads=target.threads)

    def divided(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> DividedNetwork:
        """The optimised graph of the CPU provider; a torch network gets the inputs of its module."""
        from opmark.models.onnx_file import read
        from opmark.models.resolve import onnx_file, torch_module
        from opmark.models.source import source_of

        if target.provider != "cpu":
            raise UnavailableError(f"{target.name}: graphs are captured with the CPU provider only")
        path, source = onnx_file(model, dimensions=dimensions), source_of(model)
        file = read(path, dimensions if source.is_onnx and not source.variant else {})
        example = None
        if not source.is_onnx:
            _, tensors = torch_module(source.base if source.path is None else str(source.path), dimensions=dimensions)
            example = [np.ascontiguousarray(tensor.numpy()) for tensor in tensors]
        try:
            return OptimisedNetwork(file, example, _TargetSessions(target))
        except _runtime_errors() as error:
            raise MeasurementError(f"ONNX Runtime cannot run {path.name}: {_first_line(error)}") from error


class _TargetSessions:
    """Sessions with the options of one target."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def save_optimised(self, file: "OnnxFile", path: Path, *, weights: str, inside_bytes: int) -> None:
        """Write the optimised graph with its weights beside it, before they are packed for speed."""
        options = _options(self._target, optimise=True)
        options.optimized_model_filepath = str(path)
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", weights)
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_min_size_in_bytes", str(inside_bytes)
        )
        for name, size in file.overrides.items():
            options.add_free_dimension_override_by_name(name, size)
        if file.changed:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(file.path.parent)
            )
        _open(file.model.SerializeToString() if file.changed else str(file.path), options, self._target, fallback=False)

    def open_part(self, model: bytes, constants: Mapping[str, Any]) -> Any:
        """A session without optimisation: the graph is optimised already."""
        from onnxruntime import OrtValue

        options = _options(self._target, optimise=False)
        # All parts take the memory inside them from one place, as the whole network does.
        _share_memory()
        options.add_session_config_entry("session.use_env_allocators", "1")
        if constants:
            values = [OrtValue.ortvalue_from_numpy(array) for array in constants.values()]
            options.add_external_initializers(list(constants), values)
        try:
            return _open(model, options, self._target, fallback=False)
        except _runtime_errors() as error:
            raise MeasurementError(f"ONNX Runtime refuses a part of the network: {_first_line(error)}") from error

    def bound(self, session: Any, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> Prepared:
        """The session with its buffers."""
        from onnxruntime import OrtValue

        given = {name: OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
        made = {name: OrtValue.ortvalue_from_numpy(array) for name, array in outputs.items()}
        return BoundSession(session, given, made, 1)


def node_of(kernel: Kernel) -> OnnxNode:
    """The ONNX node of `kernel`. Raises `UnavailableError` where ONNX has none."""
    node = call_in("onnx", kernel)
    if not isinstance(node, OnnxNode):
        raise UnavailableError("ONNX Runtime has no such kernel")
    return node


def _bound(stacked: Stacked, target: Target, *, own_outputs: bool, check: str | None) -> Prepared:
    if check is not None:
        _check_kept(check, stacked, target)
    session = _open(stacked.model, _kernel_options(stacked, target), target, fallback=False)
    return _with_buffers(session, stacked, target, own_outputs=own_outputs)


def _with_buffers(session: Any, stacked: Stacked, target: Target, *, own_outputs: bool) -> Prepared:
    from onnxruntime import OrtValue

    memory = _DEVICE_MEMORY.get(target.provider, "cpu")
    feeds = {name: OrtValue.ortvalue_from_numpy(array, memory, 0) for name, array in stacked.feeds.items()}
    buffers: dict[Any, Any] = {}
    outputs = {}
    for name, spec in stacked.outputs.items():
        # Copies that write to the same memory keep it in cache, as the memory planner of a network does.
        place = name if own_outputs else (name.partition("_")[0], spec)
        if place not in buffers:
            array = TENSOR_MEMORY.take(tuple(spec.shape), numpy_type(spec.dtype))
            buffers[place] = OrtValue.ortvalue_from_numpy(array, memory, 0)
        outputs[name] = buffers[place]
    return BoundSession(session, feeds, outputs, stacked.copies, stacked.constants)


def use_provider(provider: str, full_name: str, options: Mapping[str, str]) -> None:
    """Let the targets' `provider` mean the execution provider `full_name` with `options` in this process."""
    _substitutes[provider] = (full_name, options)


def _open(model: bytes | str, options: Any, target: Target, *, fallback: bool) -> Any:
    import onnxruntime

    substitute = _substitutes.get(target.provider)
    full_name = substitute[0] if substitute else _providers()[target.provider]
    providers: list[Any] = [(full_name, dict(substitute[1])) if substitute else full_name]
    if full_name != f"CPU{_SUFFIX}":
        if fallback:
            providers.append(f"CPU{_SUFFIX}")
        else:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return onnxruntime.InferenceSession(model, options, providers=providers)


def _kernel_options(stacked: Stacked, target: Target) -> Any:
    from onnxruntime import OrtValue

    options = _options(target, optimise=False)
    if stacked.constants:
        values = [OrtValue.ortvalue_from_numpy(array) for array in stacked.constants.values()]
        options.add_external_initializers(list(stacked.constants), values)
    return options


def _options(target: Target, *, optimise: bool) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = target.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    for name, value in _entries.items():
        options.add_session_config_entry(name, value)
    return options


_kept: set[str] = set()


def _check_kept(signature: str, stacked: Stacked, target: Target) -> None:
    """Check once per operator and types that the session runs exactly the copies. Raises `MeasurementError`."""
    if signature in _kept:
        return
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        options = _kernel_options(stacked, target)
        options.optimized_model_filepath = str(Path(folder) / "kept.onnx")
        options.add_session_config_entry("session.disable_prepacking", "1")
        if os.path.exists(os.devnull):  # noqa: PTH110
            # Only the nodes matter: discard the weights.
            Path(folder, _WEIGHTS).symlink_to(os.devnull)
            options.add_session_config_entry("session.optimized_model_external_initializers_file_name", _WEIGHTS)
        _open(stacked.model, options, target, fallback=False)
        graph = onnx.load(options.optimized_model_filepath, load_external_data=False).graph
    nodes = [node for node in graph.node if node.name != END]
    inserted = sorted({node.op_type for node in nodes if not node.name.startswith("copy")})
    if inserted:
        raise MeasurementError(f"the runtime inserts {', '.join(inserted)} around it")
    if len(nodes) != stacked.copies:
        raise MeasurementError(f"the runtime kept {len(nodes)} of {stacked.copies} copies")
    _kept.add(signature)


def _signature(node: OnnxNode) -> str:
    types = ",".join(operand.spec.dtype if operand else "" for operand in node.inputs)
    return f"{node.domain}:{node.op_type}/{node.opset}({types})"


def _network_feeds(session: Any) -> dict[str, Any]:
    from onnxruntime import OrtValue

    random = np.random.default_rng(0)
    feeds = {}
    for item in session.get_inputs():
        open_sizes = [size for size in item.shape if not isinstance(size, int)]
        if open_sizes:
            raise MeasurementError(
                f"input {item.name!r} has the open dimension {open_sizes[0]!r}", hint="give it a value"
            )
        dtype = np.dtype(_ELEMENT_TYPES.get(item.type, "float32"))
        array = example_array(item.name, item.shape, dtype, random)
        feeds[item.name] = OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
    return feeds


@cache
def _share_memory() -> None:
    """Register the allocator that sessions of this process may share."""
    from onnxruntime import OrtAllocatorType, OrtMemoryInfo, OrtMemType, create_and_register_allocator

    memory = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)
    create_and_register_allocator(memory, None)


@cache
def _providers() -> dict[str, str]:
    """Short provider name, as in targets → full provider name."""
    import onnxruntime

    short = {name.removesuffix(_SUFFIX): name for name in onnxruntime.get_available_providers()}
    return {
        re.sub(r"[^a-z0-9]", "", name.lower()): full
        for name, full in sorted(short.items())
        if name not in _NOT_MEASURED
    }


def _version() -> str:
    import onnxruntime

    return ".".join(onnxruntime.__version__.split(".")[:2])


@cache
def _runtime_errors() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = [item for item in vars(state).values() if isinstance(item, type) and issubclass(item, Exception)]
    return (*found, RuntimeError, ValueError)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:240]
