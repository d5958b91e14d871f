"""Writes a torch module as an ONNX file."""

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import OpMarkError

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
        with _silence(), torch.inference_mode():
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


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The exporter speaks through three channels, and stdout belongs to our caller's data."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
