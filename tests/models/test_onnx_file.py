"""What is wrong with an ONNX file is said in one sentence that names the file."""

from pathlib import Path
from typing import Any

import pytest
from tests.models.onnx_models import array, light_path, model, node, saved

from opmark.core.errors import ContentError, UsageError
from opmark.models.onnx_file import read


def relu(**inputs: Any) -> Any:
    return model([node("Relu", ["x"], ["y"])], inputs or {"x": [1, 4]}, ["y"])


def test_a_good_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = read(saved(relu(), tmp_path / "good.onnx"), {})
    assert [item.op_type for item in file.model.graph.node] == ["Relu"]
    assert not file.changed
    assert not file.overrides


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="no such file") as caught:
        read(tmp_path / "absent.onnx", {})
    assert caught.value.where == str(tmp_path / "absent.onnx")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="cannot be read"):
        read(tmp_path, {})


@pytest.mark.parametrize("content", [b"", b"hello, I am a text", b"\x00" * 64, b"PK\x03\x04" + b"\xff" * 100])
def test_what_is_not_onnx_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.onnx"
    path.write_bytes(content)
    with pytest.raises(ContentError, match="not an ONNX file") as caught:
        read(path, {})
    assert caught.value.where == str(path)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    content = light_path("light-squeezenet").read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ContentError, match="not an ONNX file"):
        read(path, {})


def test_an_empty_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="empty graph"):
        read(saved(model([], {"x": [1]}, ["x"]), tmp_path / "empty.onnx"), {})


def test_an_open_named_dimension_is_asked_for_and_taken(tmp_path: Path) -> None:
    path = saved(relu(x=["batch", 4]), tmp_path / "open.onnx")
    with pytest.raises(ContentError, match=r"input 'x' leaves dimension 0 \('batch'\) open") as caught:
        read(path, {})
    assert "--dimension batch=1" in (caught.value.hint or "")
    assert read(path, {"batch": 3}).overrides == {"batch": 3}


def test_an_open_nameless_dimension_is_given_by_its_place(tmp_path: Path) -> None:
    path = saved(relu(x=[1, None]), tmp_path / "open.onnx")
    with pytest.raises(ContentError, match=r"'x\.1'"):
        read(path, {})
    file = read(path, {"x.1": 7})
    assert file.changed
    assert file.model.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 7


def test_all_open_dimensions_are_in_the_hint(tmp_path: Path) -> None:
    path = saved(relu(x=["batch", "length"]), tmp_path / "open.onnx")
    with pytest.raises(ContentError) as caught:
        read(path, {})
    assert "batch=1 --dimension length=" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("given", "message"), [({"heads": 2}, "no open dimension 'heads'"), ({"batch": 0}, "cannot be 0")]
)
def test_a_dimension_that_cannot_be_is_refused(tmp_path: Path, given: dict[str, int], message: str) -> None:
    path = saved(relu(x=["batch", 4]), tmp_path / "open.onnx")
    with pytest.raises(UsageError, match=message):
        read(path, given)


def external(folder: Path) -> Path:
    import onnx

    built = model([node("Gemm", ["x", "w"], ["y"])], {"x": [2, 64]}, ["y"], [array("w", 64, 64)])
    onnx.save_model(built, str(folder / "big.onnx"), save_as_external_data=True, location="big.data", size_threshold=0)
    return folder / "big.onnx"


def test_weights_in_another_file_are_found(tmp_path: Path) -> None:
    assert read(external(tmp_path), {}).model.graph.initializer[0].name == "w"


def test_missing_external_weights_are_named(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "big.data").unlink()
    with pytest.raises(ContentError, match=r"'w' are in 'big\.data', which is missing"):
        read(path, {})


def test_short_external_weights_are_noticed(tmp_path: Path) -> None:
    path = external(tmp_path)
    data = tmp_path / "big.data"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(ContentError, match=r"'big\.data' ends before"):
        read(path, {})


def test_a_cycle_is_named(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]
    with pytest.raises(ContentError, match="cycle through 'node_a'"):
        read(saved(model(nodes, {"x": [4]}, ["y"]), tmp_path / "round.onnx"), {})


def test_nodes_out_of_order_are_no_cycle(tmp_path: Path) -> None:
    nodes = [node("Relu", ["a"], ["y"]), node("Relu", ["x"], ["a"])]
    assert read(saved(model(nodes, {"x": [4]}, ["y"]), tmp_path / "order.onnx"), {})


def test_control_flow_is_refused(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    branches = {
        name: helper.make_graph(
            [helper.make_node("Identity", ["x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])],
        )
        for name in ("yes", "no")
    }
    nodes = [
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["y"], then_branch=branches["yes"], else_branch=branches["no"]),
    ]
    with pytest.raises(ContentError, match="If 'node_y' decides at run time"):
        read(saved(model(nodes, {"x": [4]}, ["y"]), tmp_path / "branch.onnx"), {})
