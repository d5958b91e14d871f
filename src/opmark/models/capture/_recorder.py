"""Records every ATen call of a program as it reaches the dispatcher, on fake tensors."""

# ruff: noqa: TID253 (this module is imported only when something is traced)

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.tensor import TensorSpec
from opmark.models.capture._fused_attention import FUSED, in_parts

# These operators return uninitialised memory.
_ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"})
_RESHAPES = frozenset({torch.ops.aten.view.default, torch.ops.aten.reshape.default})

_CONVOLUTIONS = frozenset({torch.ops.aten.conv2d.default, torch.ops.aten.convolution.default})
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One call with its tensors by name. A `free` call computes and moves nothing: a view, an allocation."""

    call: AtenCall
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scope: str
    phase: str
    free: bool


class Recorder(TorchDispatchMode):
    """Records calls in order; it is entered above a `FakeTensorMode`.

    A composite operator that `wanted` does not recognise is replaced by the calls it makes itself. So a call is
    recorded at the highest known level, and no copy hides inside it. Of `FUSED` calls, the parts are recorded.
    """

    def __init__(self, fake: FakeTensorMode, weights: Mapping[int, str], wanted: Callable[[AtenCall], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.records: list[Recorded] = []
        self.specs: dict[str, TensorSpec] = {}
        self.weights: dict[str, TensorSpec] = {}
        self.scope = ""
        self.phase = "forward"
        self._paused = False
        self._fake = fake
        self._weight_names = weights
        self._wanted = wanted
        self._names: dict[int, str] = {}
        self._of_storage: dict[int, list[torch.Tensor]] = {}
        self._weight_storages: set[int] = set()

    def name(self, tensor: torch.Tensor, name: str) -> None:
        """Call `tensor` (a fake one) `name` from now on."""
        self.specs[name] = spec_of(tensor)
        self._names[id(tensor)] = name
        # Keeping the tensors keeps their ids and their storages' ids unique.
        self._of_storage.setdefault(_storage(tensor), []).append(tensor)

    def enter(self, phase: str) -> None:
        """Calls belong to `phase` from now on."""
        self.phase = phase

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Inside this context calls are not recorded, and their results count as given."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def name_of(self, tensor: torch.Tensor) -> str:
        """The current name of `tensor`."""
        return self._names[id(self._faked(tensor))]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the call on fake tensors and record it."""
        del types
        args, kwargs = pytree.tree_map_only(torch.Tensor, self._faked, (args, dict(kwargs or {})))
        if self._paused:
            return func(*args, **kwargs)
        if self.phase == "update" and func is torch.ops.aten._local_scalar_dense.default:
            # An optimiser asks how many steps it has taken, the one value that a training step depends on.
            return 1.0
        if func in FUSED:
            with self:
                return in_parts(func, args, kwargs)
        if func in _CONVOLUTIONS and _is_copied_first(args[0]):
            with self:
                args = (args[0].contiguous(), *args[1:])
        result = func(*args, **kwargs)
        if func in _RESHAPES and _storage(result) == _storage(args[0]):
            result = _as_eager(result, args[0])
        if func is torch.ops.aten.copy_.default and self._hands_over(*args[:2]):
            return func(*args, **kwargs)
        operands = [item for item in pytree.tree_leaves((args, kwargs)) if isinstance(item, torch.Tensor)]
        made = [item for item in pytree.tree_leaves(result) if isinstance(item, torch.Tensor)]
        if not made and not func._schema.is_mutable:
            return result
        operator = func._schema.name.partition("::")[2]
        changed = list(_written(func, args, kwargs))
        storages = {_storage(item) for item in operands}
        view = not changed and bool(storages) and all(_storage(item) in storages for item in made)
        free = view or operator in _ALLOCATIONS or torch.Tag.inplace_view in func.tags
        call = self._call(func, args, kwargs, operands, made or changed)
        if not free and _is_composite(func) and not self._wanted(call):
            # The dispatcher's own kernel: rules that torch registers in Python make other calls.
            with self:
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        if not view or any(id(item) not in self._names for item in made):
            self._record(call, operands, made, changed, free=free)
        return result

    def _record(
        self,
        call: AtenCall,
        operands: list[torch.Tensor],
        made: list[torch.Tensor],
        changed: list[torch.Tensor],
        *,
        free: bool,
    ) -> None:
        inputs = tuple(dict.fromkeys(self._names[id(item)] for item in operands))
        outputs: list[str] = []
        for item in changed or made:
            name = f"{call.op.partition('.')[0]}_{len(self.records)}" + (f"_{len(outputs)}" if outputs else "")
            outputs.append(name)
            if changed:
                # All later reads of this memory, through any view, see the new content.
                self.specs[name] = spec_of(item)
                for alias in self._of_storage[_storage(item)]:
                    self._names[id(alias)] = name
            else:
                self.name(item, name)
        for item in made:
            if id(item) not in self._names:
                self.name(item, outputs[0])
        self.records.append(
            Recorded(call=call, inputs=inputs, outputs=tuple(outputs), scope=self.scope, phase=self.phase, free=free)
        )

    def _hands_over(self, gradient: torch.Tensor, made: torch.Tensor) -> bool:
        """True if autograd copies `made` into a weight's `gradient` only because this recorder holds a reference.

        Without the recorder it takes the tensor itself.
        """
        if (
            self.phase != "backward"
            or spec_of(gradient) != spec_of(made)
            or _steps(gradient) != _steps(made)
            or spec_of(gradient) not in self.weights.values()
        ):
            return False
        for alias in self._of_storage[_storage(gradient)]:
            self._names[id(alias)] = self._names[id(made)]
        return True

    def _faked(self, tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, FakeTensor):
            if id(tensor) not in self._names:
                self._adopt(tensor, f"constant_{len(self._names)}")
            return tensor
        fake = self._fake.from_tensor(tensor)
        if id(fake) not in self._names:
            self._adopt(fake, self._weight_names.get(id(tensor), f"constant_{len(self._names)}"))
        return fake

    def _adopt(self, tensor: torch.Tensor, name: str) -> None:
        """Register a tensor that no recorded call has made: a weight, or a constant of the module."""
        self.name(tensor, name)
        self.weights[name] = self.specs.pop(name)
        self._weight_storages.add(_storage(tensor))

    def _call(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: list[torch.Tensor],
        made: list[torch.Tensor],
    ) -> AtenCall:
        return AtenCall(
            op=str(func).removeprefix("aten."),
            arguments=tuple(_plain(item) for item in args),
            keywords={key: _plain(item) for key, item in kwargs.items()},
            outputs=tuple(spec_of(item) for item in made),
            strides=tuple(None if item.is_contiguous() else tuple(item.stride()) for item in operands),
            parameters=tuple(index for index, item in enumerate(operands) if _storage(item) in self._weight_storages),
        )


def _as_eager(view: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """The `view` of `source` with the strides that eager torch gives it.

    Fake tensors may give axes of size 1 other strides, and a convolution chooses its memory layout by them.
    """
    with unset_fake_temporarily():
        strides = torch.empty_strided(source.shape, source.stride(), device="meta").view(view.shape).stride()
    return view if strides == view.stride() else source.as_strided(view.shape, strides, source.storage_offset())


def _is_copied_first(images: torch.Tensor) -> bool:
    """True if a convolution first copies its `images`, because they are stored in neither of its layouts."""
    return images.dim() == 4 and not images.is_contiguous() and suggest_memory_format(images) is torch.contiguous_format


def _steps(tensor: torch.Tensor) -> list[int]:
    """The strides of axes with more than one element; the others have no effect."""
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]


def _is_composite(func: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Shape and element type of a tensor."""
    return TensorSpec(tuple(int(size) for size in tensor.shape), _word(tensor.dtype))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _written(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            yield from (item for item in pytree.tree_leaves(value) if isinstance(item, torch.Tensor))


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return spec_of(value)
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return _word(value)
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, torch.SymInt):
        return int(value)
    return value if isinstance(value, (bool, int, float, str)) else None


def _word(value: object) -> str:
    return str(value).removeprefix("torch.")
