"""What the quantising tools cannot do is one sentence, and nothing of it is left behind."""

from pathlib import Path

import pytest
from tests.models.onnx_models import array, model, node, saved

from opmark.core.errors import ContentError
from opmark.models.capture.onnx_quantise import quantise
from opmark.models.onnx_file import read


def test_what_cannot_be_quantised_names_the_file(tmp_path: Path) -> None:
    graph = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 3]}, ["y"], [array("w", 4, 5)])
    path = saved(graph, tmp_path / "wrong.onnx")
    with pytest.raises(ContentError, match="cannot quantise") as caught:
        quantise(read(path, {}), "int8-static", tmp_path / "made.onnx")
    assert caught.value.where == "wrong.onnx"
    assert not (tmp_path / "made.onnx").exists()


def test_samples_are_the_same_on_every_run(tmp_path: Path) -> None:
    graph = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 4]}, ["y"], [array("w", 4, 5)])
    file = read(saved(graph, tmp_path / "fine.onnx"), {})
    for name in ("one", "two"):
        quantise(file, "int8-static", tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_norms_that_share_a_shift_stay_as_they_are(tmp_path: Path) -> None:
    import onnx

    nodes = [
        node("InstanceNormalization", ["x", "s", "b"], ["a"]),
        node("Conv", ["a", "w"], ["c"]),
        node("InstanceNormalization", ["c", "s", "b"], ["y"]),
    ]
    weights = [array("s", 3), array("b", 3), array("w", 3, 3, 1, 1)]
    path = saved(model(nodes, {"x": [1, 3, 8, 8]}, ["y"], weights), tmp_path / "norms.onnx")
    quantise(read(path, {}), "int8-static", tmp_path / "made.onnx")
    made = [item.op_type for item in onnx.load(tmp_path / "made.onnx").graph.node]
    assert made.count("InstanceNormalization") == 2
    assert made.count("QuantizeLinear") == 2
