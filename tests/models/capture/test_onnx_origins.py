"""The module path that torch's exporter notes on a node."""

import pytest

from opmark.models.capture.onnx_origins import module_path


def noted(value: str | None) -> object:
    from onnx import helper

    made = helper.make_node("Relu", ["x"], ["y"])
    if value is not None:
        made.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=value)
    return made


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("['', 'layers', 'layers.0', 'layers.0.conv1', 'conv2d']", "layers.0.conv1"),
        ("['', 'relu']", ""),
        ("['relu']", ""),
        ("not a list [", ""),
        ("7", ""),
        (None, ""),
    ],
)
def test_the_innermost_module_is_taken(value: str | None, path: str) -> None:
    assert module_path(noted(value)) == path  # type: ignore[arg-type]
