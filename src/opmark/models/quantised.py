"""ONNX files quantised to eight bits by ONNX Runtime's own tools, cached by content."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from opmark.core.canonical import content_id
from opmark.core.files import atomic_path, sha256
from opmark.models.onnx_file import read
from opmark.models.source import code_id


def quantised(path: Path, variant: str, cache: Path, *, dimensions: Mapping[str, int], name: str) -> Path:
    """The file that `path` becomes as `variant`, `int8-dynamic` or `int8-static`, made on first use.

    `dimensions` fills the open ones, in the result for good: activations are calibrated on concrete shapes.
    Raises `ContentError` as `read` does and where ONNX Runtime cannot quantise the network.
    """
    versions = [version(package) for package in ("onnx", "onnxruntime")]
    made_by = code_id("models/capture/onnx_quantise.py")
    key = content_id([variant, sha256(path), dict(dimensions), versions, made_by])
    target = cache / "exports" / f"{name}-{variant}-{key}.onnx"
    if not target.is_file():
        from opmark.models.capture.onnx_quantise import quantise

        file = read(path, dimensions)
        with atomic_path(target) as temporary:
            quantise(file, variant, temporary)
    return target
