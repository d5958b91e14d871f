"""ONNX files made from networks and cached by content: exported from torch, or quantised to eight bits."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.canonical import content_id
from opmark.core.errors import OpMarkError
from opmark.core.files import atomic_path, sha256
from opmark.models.onnx_file import read
from opmark.models.origin import code_id, installed, network_code, zoo_dimensions

if TYPE_CHECKING:
    from opmark.models.family import Network


def exported_zoo_model(model: str, cache: Path, dimensions: Mapping[str, int]) -> Path:
    """The ONNX file of a zoo network, exported on first use.

    Raises `UsageError` for a dimension the zoo does not have, `OpMarkError` where torch cannot export it.
    """
    sizes = zoo_dimensions(model, dimensions)

    def build() -> "Network":
        from opmark.models import zoo

        built = zoo.build(model, batch=sizes["batch"], size=sizes["size"])
        return built.module, built.inputs

    # An export can take minutes, so a change of one family keeps the files of the others.
    return _exported(build, model, ["zoo", model, sizes, network_code(model)], cache, where=model)


def exported_program(path: Path, cache: Path, dimensions: Mapping[str, int]) -> Path:
    """The ONNX file of a `.pt2` file with `dimensions` given, exported on first use. Raises as `program_of` does."""

    def build() -> "Network":
        from opmark.models.programs.program import program_of

        return program_of(path, dimensions)

    return _exported(build, path.stem, ["pt2", sha256(path), dict(dimensions)], cache, where=str(path))


def quantised(path: Path, variant: str, cache: Path, *, dimensions: Mapping[str, int], name: str) -> Path:
    """The eight-bit form of the ONNX file at `path`, made on first use; `variant` is `int8-dynamic` or `int8-static`.

    `dimensions` fills the open ones for good: activations are calibrated on concrete shapes. Raises `ContentError` as
    `read` does and where ONNX Runtime cannot quantise the network.
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


def _exported(build: "Callable[[], Network]", name: str, content: list[object], cache: Path, *, where: str) -> Path:
    versions = [installed(package) for package in ("torch", "onnxscript", "onnx", "transformers")]
    key = content_id([*content, versions, code_id("models/capture/onnx_export.py")])
    path = cache / "exports" / f"{name}-{key}.onnx"
    if not path.is_file():
        from opmark.models.capture.onnx_export import export
        from opmark.models.operator_list import list_operators_once

        list_operators_once()
        module, inputs = build()
        with atomic_path(path) as temporary:
            try:
                export(module, inputs, temporary)
            except OpMarkError as error:  # which names the temporary file
                raise type(error)(error.message, where=where, hint=error.hint) from error
    return path
