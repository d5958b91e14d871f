"""Weights of an ONNX file lie beside it: no path leads out of the model's folder."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from opmark.core.errors import ContentError
from opmark.models.resolve import graph_of
from opmark.models.weight_files import check_weight_files, is_inside

TARGET = "onnxruntime-cpu-t1"


def saved(folder: Path, location: str) -> Path:
    """An ONNX file whose weight is said to lie at `location`; the weights themselves are in `folder.parent`."""
    folder.mkdir(exist_ok=True)
    weight = helper.make_tensor("w", TensorProto.FLOAT, (4, 4), [0.5] * 16)
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    (folder / "inside.data").write_bytes(weight.SerializeToString() * 2)
    (folder.parent / "outside.data").write_bytes(bytes(64))
    weight.ClearField("float_data")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [weight],
    )
    path = folder / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()
    )
    return path


@pytest.mark.parametrize("location", ["../outside.data", "sub/../../outside.data", "/etc/passwd", "", ".", "a\\b"])
def test_weights_outside_the_folder_are_refused_in_one_sentence(tmp_path: Path, location: str) -> None:
    path = saved(tmp_path / "model", location)
    with pytest.raises(ContentError, match="outside the model's folder") as refused:
        graph_of(str(path), TARGET, cache=tmp_path / "cache")
    assert "'w'" in refused.value.message


def test_weights_inside_the_folder_are_read(tmp_path: Path) -> None:
    inside = tmp_path / "model"
    for location in ("inside.data", "./sub/../inside.data", str(inside / "inside.data")):
        check_weight_files(saved(inside, location))


def test_a_constant_of_a_node_cannot_lead_out_either(tmp_path: Path) -> None:
    path = saved(tmp_path / "model", "inside.data")
    model = onnx.load(path, load_external_data=False)
    model.graph.node.add(op_type="Constant", output=["c"]).attribute.add(
        name="value", type=onnx.AttributeProto.TENSOR
    ).t.external_data.add(key="location", value="../outside.data")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ContentError, match="outside the model's folder"):
        check_weight_files(path)


def test_inside_means_below_the_folder(tmp_path: Path) -> None:
    assert is_inside("weights/a.bin", tmp_path)
    assert not is_inside("../" + tmp_path.name + "2/a.bin", tmp_path)
    assert not is_inside(b"a\xff.bin", tmp_path), "protobuf gives a text that is no UTF-8 as bytes"
    assert is_inside("../" + tmp_path.name + "/a.bin", tmp_path)
    assert not is_inside("a\0b", tmp_path)


def test_other_files_are_left_to_the_reader(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff\xff location")
    check_weight_files(tmp_path / "model.onnx")
