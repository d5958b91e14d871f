"""The graph of ATen calls that eager torch makes for a module.

A dispatch trace under fake tensors of the target's device type records the calls that the dispatcher would run,
attention kernels and copies included, without computing anything.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds import GENERIC, KINDS, of_aten

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from opmark.models.capture._recorder import Recorded, Recorder


def capture(
    build: "Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]", *, name: str, training: bool = False
) -> Graph:
    """The calls of each forward pass but the first of the module that `build` makes, on the inputs it makes.

    With `training`, those of one training step (`models.capture.torch_variants`): forward in training mode, backward,
    update; nodes say their phase. Values of weights are not read.
    Raises `ContentError` where the calls depend on values, or nothing can be trained.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from opmark.models.capture._python_calls import python_calls
    from opmark.models.capture.torch_variants import TrainingStep

    module, inputs = build()
    weights = {id(tensor): label for label, tensor in _named_weights(module)}

    def run(recorder: "Recorder", tensors: Sequence[Any]) -> Any:
        if isinstance(module, torch.fx.GraphModule):
            return _interpreter(recorder, module).run(*tensors)
        with _scopes(recorder, module):
            if not training:
                return module(*tensors)
            with recorder.paused():
                step = TrainingStep(module, tensors, enter=recorder.enter)
            return step()

    if training and isinstance(module, torch.fx.GraphModule):
        raise ContentError("an exported program has no training step", where=name, hint="give a zoo name")
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    tensors = [fake.from_tensor(item) for item in inputs]
    with contextlib.nullcontext() if training else torch.inference_mode():
        if not training and not isinstance(module, torch.fx.GraphModule):
            # A first pass may fill what later ones read, such as a table of position biases.
            with _fixed_by_shapes(name), fake:
                module(*tensors)
        graph = _traced(run, tensors, fake, weights, name)
        return replace(graph, python_calls=python_calls(module, tensors, fake))


def _traced(
    run: "Callable[[Recorder, Sequence[Any]], Any]",
    tensors: Sequence[Any],
    fake: "FakeTensorMode",
    weights: dict[int, str],
    name: str,
) -> Graph:
    import torch
    from torch.utils import _pytree as pytree

    from opmark.models.capture._recorder import Recorder

    recorder = Recorder(fake, weights, _has_a_kind)
    for index, tensor in enumerate(tensors):
        recorder.name(tensor, f"input_{index}")
    with _fixed_by_shapes(name), fake, recorder:
        result = run(recorder, tensors)
    outputs = [recorder.name_of(item) for item in pytree.tree_leaves(result) if isinstance(item, torch.Tensor)]
    nodes = tuple(_node(index, item) for index, item in enumerate(recorder.records))
    return Graph(
        name=name,
        language="aten",
        nodes=nodes,
        tensors=recorder.specs,
        inputs=tuple(f"input_{index}" for index in range(len(tensors))),
        outputs=tuple(dict.fromkeys(outputs)),
        weights=recorder.weights,
    )


@contextlib.contextmanager
def _fixed_by_shapes(name: str) -> Iterator[None]:
    """Inside this context, calls on fake tensors that depend on values raise `ContentError`; nothing warns."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise ContentError(
            f"what this network runs depends on the values it computes ({error.func})",
            where=name,
            hint="only networks whose calls are fixed by their shapes have a graph",
        ) from error


def _has_a_kind(call: AtenCall) -> bool:
    return of_aten(call)[0].kind != GENERIC


def _node(index: int, item: "Recorded") -> Node:
    kernel, work = (_view(item.call), Work(flops=0, read_bytes=0, written_bytes=0)) if item.free else of_aten(item.call)
    operator = item.call.op.partition(".")[0]
    return Node(
        name=f"{operator}_{index}",
        kernel=kernel,
        work=work,
        inputs=item.inputs,
        outputs=item.outputs,
        origins=(f"aten.{item.call.op}",),
        scope=item.scope,
        phase=item.phase,
        free=item.free,
    )


def _view(call: AtenCall) -> Kernel:
    """The kernel of a call that moves nothing: another shape for the same memory."""
    before = call.tensors[0].shape if call.tensors else ()
    after = call.outputs[0] if call.outputs else TensorSpec(())
    movement = KINDS.load("movement")
    return Kernel.of(
        movement.name,
        plain(movement.parameters(op="reshape", shapes=(before,), arguments=after.shape, dtype=after.dtype)),
    )


def _named_weights(module: "torch.nn.Module") -> "Iterator[tuple[str, torch.Tensor]]":
    yield from (*module.named_parameters(), *module.named_buffers())


@contextlib.contextmanager
def _scopes(recorder: "Recorder", module: "torch.nn.Module") -> Iterator[None]:
    """Inside this context the recorder knows the path of the module whose forward is running."""
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    paths = {id(part): path for path, part in module.named_modules()}
    outer: list[str] = []

    def enter(part: "torch.nn.Module", _inputs: Any) -> None:
        outer.append(recorder.scope)
        recorder.scope = paths.get(id(part), recorder.scope)

    def leave(_part: "torch.nn.Module", _inputs: Any, _output: Any) -> None:
        recorder.scope = outer.pop()

    handles = (register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _interpreter(recorder: "Recorder", module: Any) -> Any:
    import torch

    class Scoped(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            stack = list((n.meta.get("nn_module_stack") or {}).values())
            recorder.scope = str(stack[-1][0]) if stack else ""
            return super().run_node(n)

    return Scoped(module)
