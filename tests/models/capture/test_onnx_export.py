from pathlib import Path

import pytest

from opmark.core.errors import OpMarkError
from opmark.models.capture.onnx_export import OPSET, export
from opmark.models.operator_list import list_operators_once


def test_a_module_becomes_one_file_of_the_asked_opset_in_silence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import onnx
    import torch

    path = tmp_path / "linear.onnx"
    export(torch.nn.Linear(3, 5).eval(), (torch.ones(2, 3),), path)
    model = onnx.load(path, load_external_data=False)
    assert {item.version for item in model.opset_import if item.domain == ""} == {OPSET}
    assert sorted(tuple(item.dims) for item in model.graph.initializer) == [(5,), (5, 3)]
    assert [item.name for item in tmp_path.iterdir()] == ["linear.onnx"]
    assert capfd.readouterr().out == ""


def test_what_torch_cannot_export_is_one_sentence(tmp_path: Path) -> None:
    import torch

    class Fickle(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum().item() > 0 else x.new_zeros(int(x.sum().item()))

    with pytest.raises(OpMarkError, match="torch cannot export") as caught:
        export(Fickle(), (torch.ones(2),), tmp_path / "fickle.onnx")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "fickle.onnx").exists()


def test_operators_are_listed_once_for_all_exports(tmp_path: Path) -> None:
    import torch
    from torch.onnx._internal.exporter import _registration

    list_operators_once()
    for name in ("one", "two"):
        export(torch.nn.Linear(3, 5).eval(), (torch.ones(2, 3),), tmp_path / f"{name}.onnx")
    listed = _registration.onnxscript_apis.get_torchlib_ops.cache_info()  # type: ignore[attr-defined]
    assert listed.misses == 1
    assert listed.hits >= 1
