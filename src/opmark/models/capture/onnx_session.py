"""ONNX Runtime's optimised graph of a model, and the shape of every tensor in it."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.core.kernels.tensor import TensorSpec
from opmark.models.onnx_file import OnnxFile

if TYPE_CHECKING:
    import onnx

_WEIGHTS = "weights.bin"
# Smaller constants stay in the file: shapes, axes and scales, whose values we read.
_INSIDE_BYTES = 1024
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    **{
        f"tensor({name})": name
        for name in (
            "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"
        )
    },
}  # fmt: skip


def optimised(file: OnnxFile, *, threads: int) -> "onnx.ModelProto":
    """The graph that ONNX Runtime's CPU provider would run for `file`, without its large weights.

    Raises `ContentError` where ONNX Runtime refuses the model.
    """
    import onnx
    import onnxruntime

    with tempfile.TemporaryDirectory(prefix="opmark-") as folder:
        # The large weights are never read, so they are written to the null device.
        if os.path.exists(os.devnull):  # noqa: PTH110
            Path(folder, _WEIGHTS).symlink_to(os.devnull)
        options = _options(onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, threads)
        options.optimized_model_filepath = str(Path(folder, "model.onnx"))
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", _WEIGHTS)
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_min_size_in_bytes", str(_INSIDE_BYTES)
        )
        for name, size in file.overrides.items():
            options.add_free_dimension_override_by_name(name, size)
        if file.changed:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(file.path.parent)
            )
        source = file.model.SerializeToString() if file.changed else str(file.path)
        try:
            onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except refusals() as error:
            raise ContentError(f"ONNX Runtime refuses it: {_condensed(error)}", where=str(file.path)) from error
        return onnx.load(Path(folder, "model.onnx"), load_external_data=False)


def tensor_specs(model: "onnx.ModelProto", *, where: str) -> dict[str, TensorSpec]:
    """Shape and element type of every tensor that a node of the optimised `model` makes or a caller gives.

    The saved graph carries no shapes, so each tensor becomes an output whose type ONNX Runtime infers.
    Raises `ContentError` for a tensor whose shape depends on values.
    """
    import onnx
    import onnxruntime

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    large = [item for item in graph.initializer if item.external_data]
    names = {item.name for item in graph.input}
    # Shapes depend on a large weight's shape only; as an input it needs no values.
    graph.input.extend(
        onnx.helper.make_tensor_value_info(item.name, item.data_type, list(item.dims))
        for item in large
        if item.name not in names
    )
    # Written anew: removing them one by one compares each with all that come before it.
    small = [item for item in model.graph.initializer if not item.external_data]
    del graph.initializer[:]
    graph.initializer.extend(small)
    made = [name for node in graph.node for name in node.output if name]
    del graph.output[:], graph.value_info[:]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    options = _options(onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 1)
    try:
        session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except refusals() as error:
        raise ContentError(f"ONNX Runtime refuses it: {_condensed(error)}", where=where) from error
    infos = {item.name: item for item in (*session.get_inputs(), *session.get_outputs())}
    found = {name: _spec(item) for name, item in infos.items()}
    if any(spec is None for spec in found.values()):
        found |= _by_running(session, [name for name, spec in found.items() if spec is None], where)
    return {name: spec for name, spec in found.items() if spec is not None}


@cache
def block_width() -> int:
    """Width of the blocked channel layout that ONNX Runtime uses on this processor; 0 where it uses none."""
    import onnx
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 1, 1], [1.0])],
    )
    probe = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    file = OnnxFile(path=Path("probe.onnx"), model=onnx.ModelProto.FromString(probe.SerializeToString()), changed=True)
    for node in (result := optimised(file, threads=1)).graph.node:
        if node.op_type == "Conv" and node.domain == "com.microsoft.nchwc":
            weights = {item.name: item for item in result.graph.initializer}[node.input[1]]
            return int(weights.dims[0])
    return 0


def _options(level: Any, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Nothing is run, so preparation for speed would be wasted.
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _spec(item: Any) -> TensorSpec | None:
    dtype = _DTYPES.get(item.type)
    shape = item.shape
    if dtype is None or shape is None or any(not isinstance(size, int) for size in shape):
        return None
    return TensorSpec(tuple(shape), dtype)


def _by_running(session: Any, names: Iterable[str], where: str) -> Mapping[str, TensorSpec]:
    """Shapes that only a run can give, from one run on ones."""
    import numpy as np

    wanted = list(names)
    feeds = {}
    for item in session.get_inputs():
        spec = _spec(item)
        if spec is None or spec.dtype == "bfloat16":
            raise ContentError(f"the type of input {item.name!r} is not supported: {item.type}", where=where)
        feeds[item.name] = np.ones(spec.shape, dtype=spec.dtype)
    try:
        values = session.run(wanted, feeds)
    except refusals() as error:
        raise ContentError(
            f"the shape of {wanted[0]!r} depends on values, and a run on ones fails: {_condensed(error)}", where=where
        ) from error
    found = {}
    for name, value in zip(wanted, values, strict=True):
        if not isinstance(value, np.ndarray) or str(value.dtype) not in _DTYPES.values():
            raise ContentError(f"{name!r} is not a tensor of numbers", where=where)
        found[name] = TensorSpec(tuple(value.shape), str(value.dtype))
    return found


def refusals() -> tuple[type[Exception], ...]:
    """The exceptions ONNX Runtime raises about a model; they have no common base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented", "NoSuchFile", "NoModel")
    return (*(getattr(state, name) for name in names), state.RuntimeException, state.EPFail)


def _condensed(error: Exception) -> str:
    """The part of ONNX Runtime's message that concerns the model."""
    text = " ".join(str(error).split())
    for marker in ("This is an invalid model. ", "failed:", "Load model from "):
        if marker in text:
            text = text.rpartition(marker)[2].strip()
    return text[:200]
