"""Runs one ONNX node in ONNX Runtime, nothing optimised, as the measuring backend does."""

from opmark.bench.backends._onnx_model import stack
from opmark.core.call import OnnxNode
from opmark.core.tensor import TensorSpec


def results(node: OnnxNode) -> list[TensorSpec]:
    """What the node really returns."""
    import onnxruntime

    stacked = stack(node, copies=1, chain=False, rotated=False)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(stacked.model, options, providers=["CPUExecutionProvider"])
    values = session.run(None, dict(stacked.feeds))
    return [TensorSpec(tuple(value.shape), str(value.dtype)) for value in values]


def promised(node: OnnxNode) -> list[TensorSpec]:
    """What the node says it returns."""
    return [spec for spec in node.outputs if spec is not None]
