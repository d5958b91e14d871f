"""Small ONNX files for tests, and the light networks of the onnx wheel, each captured once per session."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.models.capture.onnx_runtime import capture
from opmark.models.zoo import family_of

LIGHT = (
    "light-alexnet",
    "light-densenet121",
    "light-inception-v1",
    "light-inception-v2",
    "light-resnet50",
    "light-shufflenet",
    "light-squeezenet",
    "light-vgg19",
    "light-zfnet512",
)


def light_path(model: str) -> Path:
    path = family_of(model).onnx_path(model)
    assert path is not None
    return path


@cache
def light_graph(model: str) -> Graph:
    return capture(light_path(model), name=model)


def array(name: str, *shape: int) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.full(shape, 0.5, dtype=np.float32), name)


def integers(name: str, *values: int) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], scope: str = "", **attributes: Any) -> Any:
    """A node; `scope` is noted on it as torch's exporter does."""
    from onnx import helper

    domain, _, op_type = op.rpartition(":")
    made = helper.make_node(op_type, inputs, outputs, domain=domain, name=f"node_{outputs[0]}", **attributes)
    if scope:
        parts = scope.split(".")
        scopes = ["", *(".".join(parts[: end + 1]) for end in range(len(parts))), outputs[0]]
        made.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=repr(scopes))
    return made


def model(
    nodes: Sequence[Any],
    inputs: dict[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    weights: Sequence[Any] = (),
) -> Any:
    """A model with float inputs; a dimension is a number, a name, or None where it is neither."""
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        initializer=list(weights),
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def saved(built: Any, path: Path) -> Path:
    path.write_bytes(built.SerializeToString())
    return path
