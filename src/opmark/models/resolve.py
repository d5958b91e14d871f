"""Finds the graph of kernels, the ONNX file or the torch module of a model and a target."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError, UnavailableError, UsageError
from opmark.core.hardware.processor import block_width as width_here
from opmark.core.hardware.target import parse_target_name
from opmark.core.kernels.graph import Graph
from opmark.core.registry import require
from opmark.models.cuda_graph import CUDA_RUNTIME, as_on_gpu
from opmark.models.exported import exported_program, exported_zoo_model, quantised
from opmark.models.graphs import encoding
from opmark.models.graphs.shipped import graphs_folder, other_versions, stored_graph
from opmark.models.onnx_file import SIZE_AT_MOST
from opmark.models.origin import GraphOrigin, origin_of
from opmark.models.source import ModelSource, is_bf16, is_training, source_of, variant_language, zoo_sizes
from opmark.models.standard_graph import as_standard, fuses_silently
from opmark.models.weight_files import check_weight_files

if TYPE_CHECKING:
    import torch

# A tensor of so many float32 elements takes a petabyte.
ELEMENTS_AT_MOST = 2**48
_ONNX_RUNTIMES = ("onnxruntime", "openvino")
# OpenVINO gets the same file; its operators are those of ONNX Runtime's own provider, with what that fuses apart again.
_ONNX_ON_CPU = frozenset({"onnxruntime-cpu", "openvino-cpu"})
# Words of torch's errors where an allocation fails, or its size has no 64 bits.
_NO_MEMORY = ("not enough memory", "allocate memory", "Storage size calculation overflowed", "Invalid size")
# What torch raises for a damaged program: wrong arguments, shapes that do not fit.
_UNRUNNABLE = (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError)


def graph_of(
    model: str,
    target_name: str,
    *,
    cache: Path | None = None,
    dimensions: Mapping[str, int] | None = None,
    block_width: int | None = None,
) -> Graph:
    """The kernels that `target_name` runs for `model`: an `.onnx` or `.pt2` file, or a zoo name, perhaps `@VARIANT`.

    `dimensions` gives the open dimensions of an ONNX file, or `batch` and `size` of a zoo network. `block_width` is
    that of the processor that runs it, by default this one; ONNX Runtime's blocks are as wide as this processor's
    where no graph with those came with OpMark, because only a processor that has them captures them.
    A graph shipped with OpMark is used where a capture would give the same one, or where nothing can be captured.
    Graphs and exports are kept in `cache`, by default the user's cache folder.
    Raises `UsageError` for an impossible pair, `ContentError` for a damaged or wrong file.
    """
    return _graph(model, target_name, cache, dict(dimensions or {}), graphs_folder(), block_width=block_width)[0]


def graph_to_predict(
    model: str,
    target_name: str,
    *,
    cache: Path | None = None,
    dimensions: Mapping[str, int] | None = None,
    block_width: int | None = None,
) -> tuple[Graph, str]:
    """The graph as `graph_of` gives it, but a shipped one also where other versions of the packages captured it.

    A capture takes up to minutes, and predictors were learned with those versions. The second value names them, like
    `onnxruntime 1.31.1`; it is empty for a graph of the versions installed here. Raises as `graph_of` does.
    """
    return _graph(
        model,
        target_name,
        cache,
        dict(dimensions or {}),
        graphs_folder(),
        any_version=True,
        block_width=block_width,
    )


def captured_graph(
    model: str, target_name: str, *, cache: Path | None = None, dimensions: Mapping[str, int] | None = None
) -> Graph:
    """The graph as `graph_of` gives it, always captured with the packages installed here.

    Raises `MissingExtraError` where a package for it is not installed, else as `graph_of` does.
    """
    return _graph(model, target_name, cache, dict(dimensions or {}), None)[0]


def is_captured(
    model: str, target_name: str, *, cache: Path | None = None, dimensions: Mapping[str, int] | None = None
) -> bool:
    """True if `cache` holds a file for the graph that `graph_of` gives. Raises `UsageError` for an impossible pair."""
    origin = graph_origin(model, target_name, dimensions=dimensions)
    return _cached_path(source_of(model), origin, cache or default_cache()).is_file()


def graph_origin(
    model: str, target_name: str, *, dimensions: Mapping[str, int] | None = None, block_width: int | None = None
) -> GraphOrigin:
    """The origin of the graph of `model` on `target_name`. Raises `UsageError` for an impossible pair.

    `block_width` is that of the processor that runs it, by default this one.
    """
    source = source_of(model)
    runtime, threads = parse_target_name(target_name)
    return origin_of(source, _language(source, runtime), threads, dimensions or {}, block_width=block_width)


def _graph(
    model: str,
    target_name: str,
    cache: Path | None,
    sizes: Mapping[str, int],
    shipped: Path | None,
    *,
    any_version: bool = False,
    block_width: int | None = None,
) -> tuple[Graph, str]:
    """The graph, and the packages of other versions that captured it, if any."""
    source, folder = source_of(model), cache or default_cache()
    # GPU time is expensive: measuring starts at once, with calls captured by any version of torch.
    on_gpu = parse_target_name(target_name)[0] == CUDA_RUNTIME
    origin = graph_origin(model, target_name, dimensions=sizes, block_width=block_width)
    path, versions = _cached_path(source, origin, folder), ""
    try:
        graph = encoding.load(path)
    except ContentError:  # missing or damaged: made again
        found = stored_graph(origin, shipped, any_version=on_gpu or any_version)
        if found is None and block_width not in (None, width_here()):
            return _graph(model, target_name, cache, sizes, shipped, any_version=any_version)
        if found is None:
            for package in origin.missing:
                require(package)
            with _enough_memory(source, sizes):
                found = _captured(source, target_name, folder, sizes)
            _check_sizes(found, str(source.path or source.name))
            encoding.save(found, path)
        elif any_version and shipped is not None:
            versions = other_versions(origin, shipped)
        graph = found
    if on_gpu:
        graph = as_on_gpu(graph)
    elif fuses_silently(target_name):
        graph = as_standard(graph)
    return dataclasses.replace(graph, name=source.name, target=target_name), versions


def _check_sizes(graph: Graph, where: str) -> None:
    """Raise `ContentError` for a tensor that fits no machine; nothing can be said about its time."""
    for name, spec in (*graph.tensors.items(), *graph.weights.items()):
        longest = max(spec.shape, default=0)
        if longest > SIZE_AT_MOST:
            raise ContentError(
                f"tensor {name!r} has a dimension of {longest:,}, above the limit of {SIZE_AT_MOST:,}", where=where
            )
        if spec.elements > ELEMENTS_AT_MOST:
            raise ContentError(
                f"tensor {name!r} has {spec.elements:,} elements, above the limit of {ELEMENTS_AT_MOST:,}", where=where
            )


def _cached_path(source: ModelSource, origin: GraphOrigin, cache: Path) -> Path:
    return cache / "graphs" / f"{source.name}-{origin.id}.json"


def onnx_file(model: str, *, cache: Path | None = None, dimensions: Mapping[str, int] | None = None) -> Path:
    """The ONNX file of `model`, exported or quantised where needed. Raises as `graph_of` does.

    The open dimensions of a quantised file are filled in, those of a plain one are still open.
    """
    source = source_of(model)
    _language(source, "onnxruntime-cpu")
    with _enough_memory(source, dimensions or {}):
        return _onnx_file(source, cache or default_cache(), dict(dimensions or {}))[0]


def torch_module(
    model: str, *, dimensions: Mapping[str, int] | None = None
) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
    """The torch module of `model` with weights, and inputs for one call.

    One call of a training variant is a `TrainingStep` of them.
    Raises `UsageError` for an ONNX file or an int8 variant, which have no torch module.
    """
    source = source_of(model)
    _language(source, "torch-eager")
    return _module(source, dict(dimensions or {}), weights=True)


@contextlib.contextmanager
def _enough_memory(source: ModelSource, sizes: Mapping[str, int]) -> Iterator[None]:
    """Turn a failed allocation into a `UsageError`: even without weights, inputs have the sizes asked for."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in _NO_MEMORY):
            raise
        given = ", ".join(f"{name} {size:,}" for name, size in sizes.items()) or "its own sizes"
        raise UsageError(
            f"{source.name} with {given} needs more memory than there is here", hint="choose smaller sizes"
        ) from error


def default_cache() -> Path:
    """The user's cache folder for files that can be made again."""
    import platformdirs

    return platformdirs.user_cache_path("opmark")


def _language(source: ModelSource, runtime: str) -> str:
    home = variant_language(source.variant)
    if runtime.startswith("torch"):
        if home == "onnx":
            raise UsageError(
                f"the variant {source.variant!r} exists for ONNX Runtime targets only",
                hint="use onnxruntime-cpu-t1, or the variant bf16",
            )
        if source.is_onnx:
            raise UsageError(
                f"{source.name} is an ONNX file, and torch has no kernels for one",
                hint="use an onnxruntime target, or give the network as a .pt2 file or a zoo name",
            )
        return "aten"
    if runtime.startswith(_ONNX_RUNTIMES) and home == "aten":
        raise UsageError(
            f"the variant {source.variant!r} exists for torch targets only",
            hint="use torch-eager-t1, or the variants int8-dynamic and int8-static",
        )
    if runtime in _ONNX_ON_CPU:
        return "onnx"
    if runtime.startswith("onnxruntime"):
        raise UnavailableError(
            f"no kernel graphs for {runtime} yet: they are captured with the CPU provider only",
            hint="use onnxruntime-cpu-t1",
        )
    # A made-up target runs the network's own language, which is quickest to capture.
    return source.language


def _captured(source: ModelSource, target_name: str, cache: Path, sizes: Mapping[str, int]) -> Graph:
    runtime, threads = parse_target_name(target_name)
    if _language(source, runtime) == "onnx":
        from opmark.models.capture.onnx_runtime import capture as capture_onnx

        path, left = _onnx_file(source, cache, sizes)
        return capture_onnx(path, threads=threads, dimensions=left, name=source.name)

    from opmark.models.capture.aten import capture
    from opmark.models.capture.quiet import quiet

    try:
        with quiet():
            return capture(
                lambda: _module(source, sizes, weights=False), name=source.name, training=is_training(source.variant)
            )
    except _UNRUNNABLE as error:
        if source.path is None or any(words in str(error) for words in _NO_MEMORY):
            raise
        reason = " ".join(str(error).partition("\n")[0].split())[:200]
        raise ContentError(f"its operators cannot be run: {reason}", where=str(source.path)) from error


def _onnx_file(source: ModelSource, cache: Path, sizes: Mapping[str, int]) -> tuple[Path, Mapping[str, int]]:
    """The file, and the dimensions still to be set in it."""
    path, left = _plain_file(source, cache, sizes)
    if not source.variant:
        return path, left
    return quantised(path, source.variant, cache, dimensions=left, name=source.base), {}


def _plain_file(source: ModelSource, cache: Path, sizes: Mapping[str, int]) -> tuple[Path, Mapping[str, int]]:
    if source.path is None:
        return exported_zoo_model(source.base, cache, sizes), {}
    if source.is_onnx:
        check_weight_files(source.path)
        return source.path, sizes
    return exported_program(source.path, cache, sizes), {}


def _module(
    source: ModelSource, sizes: Mapping[str, int], *, weights: bool
) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
    if source.path is not None:
        from opmark.models.programs.program import program_of

        return program_of(source.path, sizes)

    from opmark.models import zoo

    batch, size = zoo_sizes(sizes)
    built = zoo.build(source.base, batch=batch, size=size, weights=weights)
    module, inputs = built.module, built.inputs
    if is_bf16(source.variant):
        from opmark.models.capture.torch_variants import in_bfloat16

        module, inputs = in_bfloat16(module, inputs, weights=weights)
    return module, inputs
