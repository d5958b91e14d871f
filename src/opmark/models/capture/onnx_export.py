"""Writes a torch module as an ONNX file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import OpMarkError
from opmark.models.capture.quiet import quiet

if TYPE_CHECKING:
    import torch

OPSET = 20


def export(program: Any, inputs: "tuple[torch.Tensor, ...]", path: Path) -> None:
    """Write `program` (a module or an exported program) to `path` with its weights inside the file.

    Nothing is printed. Raises `OpMarkError` where the exporter cannot, or gives another opset than asked for.
    """
    import onnx
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with quiet(), torch.inference_mode():
            written = torch.onnx.export(program, inputs, dynamo=True, verbose=False, opset_version=OPSET)
    except torch.onnx.OnnxExporterError as error:
        first = str(error).strip().splitlines()[0]
        raise OpMarkError(f"torch cannot export this network to ONNX: {first}", where=path.stem) from error
    assert written is not None
    model = written.model_proto
    found = {item.domain: item.version for item in model.opset_import}.get("")
    if found != OPSET:
        raise OpMarkError(f"torch exported opset {found} though {OPSET} was asked for", where=path.stem)
    onnx.save_model(model, os.fspath(path))
