"""Torch networks of the zoo and `.pt2` files as cached ONNX files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.canonical import content_id
from opmark.core.files import atomic_path, sha256
from opmark.models.origin import installed, network_code, zoo_dimensions
from opmark.models.source import code_id

if TYPE_CHECKING:
    import torch


def exported_zoo_model(model: str, cache: Path, dimensions: Mapping[str, int]) -> Path:
    """The ONNX file of a zoo network, exported on first use.

    Raises `UsageError` for a dimension the zoo does not have, `OpMarkError` where torch cannot export it.
    """
    sizes = zoo_dimensions(model, dimensions)

    def build() -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        from opmark.models import zoo

        built = zoo.build(model, batch=sizes["batch"], size=sizes["size"])
        return built.module, built.inputs

    # An export takes up to minutes, so a change of one family leaves those of the others as they are.
    return _cached(build, model, ["zoo", model, sizes, network_code(model)], cache)


def exported_program(path: Path, cache: Path) -> Path:
    """The ONNX file of a `.pt2` file, exported on first use. Raises `ContentError` as `program_of` does."""

    def build() -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        from opmark.models.capture.program import program_of

        return program_of(path)

    return _cached(build, path.stem, ["pt2", sha256(path)], cache)


def _cached(
    build: "Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]",
    name: str,
    content: list[object],
    cache: Path,
) -> Path:
    versions = [installed(package) for package in ("torch", "onnxscript", "onnx", "transformers")]
    key = content_id([*content, versions, code_id("models/capture/onnx_export.py")])
    path = cache / "exports" / f"{name}-{key}.onnx"
    if not path.is_file():
        from opmark.models.capture.onnx_export import export

        module, inputs = build()
        with atomic_path(path) as temporary:
            export(module, inputs, temporary)
    return path
