"""A workspace that the tests about predictors share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands.predictors.calls import KINDS, opmark
from tests.datasets import sample
from tests.predictors import law
from tests.predictors.short_training import short_training

from opmark.core.workspace import ROOMS
from opmark.datasets.release.building import build_from


@pytest.fixture(scope="package", autouse=True)
def _training() -> Iterator[None]:
    """Training is short: these tests are about commands."""
    with short_training():
        yield


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a release, a predictor trained on it, and a small classifier in an ONNX file."""
    import onnx
    from onnx import TensorProto, helper

    folder = tmp_path_factory.mktemp("workspace")
    for room in ROOMS:
        (folder / room).mkdir()
    rows = [sample.measurement(kernel) for kind in KINDS for kernel in law.kernels(kind, 40)]
    build_from([sample.contents(rows, [])], folder / "datasets")
    weight = helper.make_tensor("w", TensorProto.FLOAT, (64, 32), [0.1] * 2048)
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"]),
        helper.make_node("Erf", ["h"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "classifier.onnx")
    assert opmark(folder, "predictors", "train").exit_code == 0
    return folder
