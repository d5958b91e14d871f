"""Writes the graphs shipped with OpMark; existing ones are kept, so that an interrupted run can continue."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import OpMarkError
from opmark.models.coverage import coverage
from opmark.models.cuda_graph import CUDA_RUNTIME
from opmark.models.graphs.shipped import graph_path, is_stored, save
from opmark.models.resolve import captured_graph, graph_origin
from opmark.models.source import source_of
from opmark.models.zoo import models

TARGETS = ("onnxruntime-cpu-t1", "torch-eager-t1")
_ENDING = ".json.gz"
_SIZE = re.compile(r"-(batch|size)(\d+)")
_SIZED = re.compile(r"(?P<name>.+?)(?P<sizes>(?:-(?:batch|size)\d+)*)")
# Networks whose eight-bit graphs are shipped: those dominated by matrix products are quantised dynamically,
# convolutional ones statically after calibration.
_DYNAMIC = (
    *("bert-base", "distilbert-base", "roberta-base", "albert-base", "gpt2", "opt-125m", "t5-small", "vit-base"),
    *("bert-tiny", "distilbert-mini", "albert-mini", "opt-mini", "qwen2-mini", "llama-block", "encoder-small"),
    *("decoder-small", "wide-and-deep", "two-tower", "mixture-of-experts", "deit-tiny"),
)
_STATIC = (
    *("mobilenet-v1", "mobilenet-v2", "efficientnet-b0", "resnet-50", "regnet-y-200mf", "regnet-x-800mf"),
    *("convnext-tiny", "inception", "nasnet-like", "rand-wire", "vgg-small", "resnet-small", "bottleneck-small"),
    *("mobilenet-small", "squeeze-small", "deit-tiny", "light-resnet50", "light-squeezenet", "light-shufflenet"),
    *("light-vgg19", "light-alexnet", "light-densenet121", "light-inception-v1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOutcome:
    """The outcome for one graph: `stored`, `kept`, or `failed` with its `error`.

    `kernels` counts those that take time; `bytes_moved_share` is in [0, 1]; `hidden` names matrix operators without
    a kind.
    """

    model: str
    target: str
    status: str
    kernels: int = 0
    bytes_moved_share: float = 0.0
    hidden: tuple[str, ...] = ()
    size_bytes: int = 0
    error: str = ""


def shipped_pairs() -> tuple[tuple[str, str], ...]:
    """The networks and targets whose graphs are shipped at their usual batch and size.

    Every network on every runtime that has it, without sealed families; in bfloat16 and in training the small ones, in
    eight bits those above.
    """
    found: list[str] = []
    for name, family in models().items():
        if family.sealed:
            continue
        found.append(name)
        if family.onnx_path(name) is None and name in family.small:
            found += [f"{name}@{variant}" for variant in ("bf16", "training")]
    found += [f"{name}@int8-dynamic" for name in _DYNAMIC]
    found += [f"{name}@int8-static" for name in _STATIC]
    return tuple((name, target) for name in found for target in targets_of(name))


def further_pairs(folder: Path) -> tuple[tuple[str, str, Mapping[str, int]], ...]:
    """Network, target and dimensions of what `folder` holds beyond `shipped_pairs`: other sizes, further variants.

    Files that are not named after a zoo network are ignored.
    """
    usual = set(shipped_pairs())
    found: list[tuple[str, str, Mapping[str, int]]] = []
    for target in TARGETS:
        # with blocks of any width
        for file in sorted({path.name for path in folder.glob(f"{_language(target)}*/*{_ENDING}")}):
            parts = _SIZED.fullmatch(file.removesuffix(_ENDING))
            assert parts is not None
            name, sizes = parts["name"], {key: int(value) for key, value in _SIZE.findall(parts["sizes"])}
            if name.partition("@")[0] in models() and (sizes or (name, target) not in usual):
                found.append((name, target, sizes))
    return tuple(found)


def targets_of(name: str) -> tuple[str, ...]:
    """The targets that have graphs of `name`, a network perhaps with a variant. Raises as `source_of` does."""
    source = source_of(name)
    languages = [source.language] if source.variant or source.is_onnx else ["onnx", "aten"]
    return tuple(target for target in TARGETS if _language(target) in languages)


def _language(target: str) -> str:
    return "onnx" if target.startswith("onnx") else "aten"


def store_graphs(
    wanted: Iterable[tuple[str, str]],
    folder: Path,
    *,
    cache: Path | None,
    dimensions: Mapping[str, int] | None = None,
) -> Iterator[StoreOutcome]:
    """Capture each model and target of `wanted` into `folder` unless it holds that very graph.

    `dimensions` replaces the usual batch and size of all of them. Yields after each; a network that a runtime cannot
    run is `failed`, and the others continue.
    """
    for model, target in wanted:
        try:
            yield _one(model, target, folder, cache, dimensions or {})
        except OpMarkError as error:
            yield StoreOutcome(model=model, target=target, status="failed", error=str(error))


def _one(model: str, target: str, folder: Path, cache: Path | None, dimensions: Mapping[str, int]) -> StoreOutcome:
    # A GPU's graph is derived from the processor's graph on request.
    target = target.replace(CUDA_RUNTIME, "torch-eager")
    origin = graph_origin(model, target, dimensions=dimensions)
    path = graph_path(origin, folder)
    if is_stored(origin, folder):
        return StoreOutcome(model=model, target=target, status="kept", size_bytes=path.stat().st_size)
    graph = captured_graph(model, target, cache=cache, dimensions=dimensions)
    save(graph, origin, folder)
    found = coverage(graph)
    return StoreOutcome(
        model=model,
        target=target,
        status="stored",
        kernels=found.kernels,
        bytes_moved_share=found.bytes_moved_share,
        hidden=found.hidden,
        size_bytes=path.stat().st_size,
    )
