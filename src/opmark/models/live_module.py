"""The graph of kernels of a torch module that exists in this process, without a file or a name of the zoo."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import UsageError
from opmark.core.hardware.target import parse_target_name
from opmark.core.kernels.graph import Graph
from opmark.models.cuda_graph import CUDA_RUNTIME, as_on_gpu

if TYPE_CHECKING:
    import torch


def graph_of_module(
    module: "torch.nn.Module", inputs: "tuple[torch.Tensor, ...]", target_name: str, *, name: str = ""
) -> Graph:
    """The kernels that `target_name` runs for one call of `module` on `inputs`, in evaluation mode.

    The module itself stays as it is. For ONNX Runtime it is exported. Nothing is computed for a torch target, but one
    call of a module that makes parts of itself in its first call: the graph is that of a later one.
    Raises `UsageError` for another runtime, `ContentError` where the calls depend on values.
    """
    runtime, threads = parse_target_name(target_name)
    title = name or type(module).__name__
    settled = True
    with _evaluating(module):
        if runtime.startswith("torch"):
            from opmark.models.capture.aten import capture

            before = _parts(module)
            graph = capture(lambda: (module, inputs), name=title)
            settled = _parts(module) == before
        elif runtime == "onnxruntime-cpu":
            from opmark.models.capture.onnx_export import export
            from opmark.models.capture.onnx_runtime import capture as capture_onnx
            from opmark.models.operator_list import list_operators_once

            list_operators_once()
            with tempfile.TemporaryDirectory(prefix="opmark-") as folder:
                path = Path(folder, "module.onnx")
                export(module, inputs, path)
                graph = capture_onnx(path, threads=threads, name=title)
        else:
            raise UsageError(
                f"no kernel graphs for {runtime} yet", hint="use torch-eager-t1, torch-cuda-t1 or onnxruntime-cpu-t1"
            )
    if not settled:
        graph = _graph_of_later_call(module, inputs, title)
    if runtime == CUDA_RUNTIME:
        graph = as_on_gpu(graph)
    return dataclasses.replace(graph, target=target_name)


def _parts(module: "torch.nn.Module") -> set[int]:
    """The identities of the modules and weights inside `module`."""
    return {id(part) for part in (*module.modules(), *module.parameters())}


def _graph_of_later_call(module: "torch.nn.Module", inputs: "tuple[torch.Tensor, ...]", title: str) -> Graph:
    """The calls of a module after a first, real one."""
    import torch

    from opmark.models.capture.aten import capture

    with _evaluating(module):
        with torch.no_grad():
            module(*inputs)
        return capture(lambda: (module, inputs), name=title)


@contextlib.contextmanager
def _evaluating(module: "torch.nn.Module") -> Iterator[None]:
    """Inside this context the module is in evaluation mode; every part gets its own mode back, and all else it held.

    Some modules keep what they compute, a table of positions say. A capture computes with tensors without values, which
    would break their next call.
    """
    before: dict[int, tuple[Any, Any]] = {}
    for part in module.modules():
        _remember(vars(part), before)
    module.eval()
    try:
        yield
    finally:
        for held, contents in before.values():
            _restore(held, contents)


def _remember(held: Any, found: dict[int, tuple[Any, Any]]) -> None:
    """Add to `found` what a dictionary, list or set holds, and those inside it; others may refer to the same one."""
    if isinstance(held, (dict, list, set)) and id(held) not in found:
        plain = dict if isinstance(held, dict) else list if isinstance(held, list) else set
        found[id(held)] = held, plain(held)
        for value in held.values() if isinstance(held, dict) else held:
            _remember(value, found)


def _restore(held: Any, contents: Any) -> None:
    if isinstance(held, list):
        held[:] = contents
        return
    for added in set(held) - set(contents):
        if isinstance(held, dict):
            del held[added]
        else:
            held.remove(added)
    held.update(contents)
