"""Runs one ONNX node in ONNX Runtime, nothing optimised."""

from typing import Any

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec


def results(node: OnnxNode) -> list[TensorSpec]:
    """What the node really returns."""
    import onnxruntime
    from onnx import helper

    names = [f"i{index}" if operand is not None else "" for index, operand in enumerate(node.inputs)]
    outputs = [f"o{index}" if spec is not None else "" for index, spec in enumerate(node.outputs)]
    given = {name: operand for name, operand in zip(names, node.inputs, strict=True) if operand is not None}
    arrays = {name: _array(operand) for name, operand in given.items()}
    graph = helper.make_graph(
        [helper.make_node(node.op_type, names, outputs, domain=node.domain, **_attributes(node))],
        "single",
        [_info(name, operand.spec) for name, operand in given.items() if not operand.constant],
        [_info(name, spec) for name, spec in zip(outputs, node.outputs, strict=True) if spec is not None],
        initializer=[_constant(name, arrays[name]) for name, operand in given.items() if operand.constant],
    )
    opsets = {"": max(node.opset, 20), "com.microsoft": 1, "com.microsoft.nchwc": 1}
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*item) for item in opsets.items()], ir_version=10
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {name: arrays[name] for name, operand in given.items() if not operand.constant}
    return [TensorSpec(tuple(value.shape), str(value.dtype)) for value in session.run(None, feeds)]


def promised(node: OnnxNode) -> list[TensorSpec]:
    """What the node says it returns."""
    return [spec for spec in node.outputs if spec is not None]


def _array(operand: Operand) -> Any:
    import numpy as np

    if operand.value is not None:
        return np.array(operand.value, dtype=operand.spec.dtype).reshape(operand.spec.shape)
    source = np.random.default_rng(0)
    if operand.spec.dtype.startswith("float"):
        return np.asarray(source.standard_normal(operand.spec.shape)).astype(operand.spec.dtype)
    return np.asarray(source.integers(0, operand.limit or 2, operand.spec.shape)).astype(operand.spec.dtype)


def _attributes(node: OnnxNode) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in node.attributes.items()}


def _info(name: str, spec: TensorSpec) -> Any:
    import numpy as np
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype)), spec.shape)


def _constant(name: str, value: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(value, name)
