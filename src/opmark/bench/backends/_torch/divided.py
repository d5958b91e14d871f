"""A network of torch in parts: the calls of one recorded pass, made again in order with real tensors."""

# ruff: noqa: TID253 (this module is imported only in a worker)

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from opmark.bench.backends._torch.calls import refusal
from opmark.bench.worker.divided import DividedNetwork, Fingerprint, NamedKernel, NetworkPart, Survey, fingerprint
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.kernels.call import AtenCall
from opmark.kinds import GENERIC, of_aten
from opmark.models.capture._recorder import Recorder
from opmark.models.source import split_variant


@dataclass(slots=True, kw_only=True)
class _Replayed:
    """One call. `fills` are the places of tensors in its arguments (container, key, slot), empty between calls.

    `reads` and `makes` map the names of the captured graph to slots.
    """

    operator: Callable[..., Any]
    name: str
    positional: list[Any]
    keywords: dict[str, Any]
    fills: list[tuple[Any, Any, int]]
    reads: dict[str, list[int]]
    makes: dict[str, int]
    results: list[int]


class _ReplayRecorder(Recorder):  # type: ignore[no-untyped-call]
    """Records as the capture does, and keeps what is needed to make each call again."""

    def __init__(self, fake: FakeTensorMode, weights: Mapping[int, str]) -> None:
        super().__init__(fake, weights, lambda call: of_aten(call)[0].kind != GENERIC)
        self.calls: list[_Replayed] = []
        # Real weights and constants by slot, and the shape and strides of every slot.
        self.given: dict[int, torch.Tensor] = {}
        self.shapes: dict[int, FakeTensor] = {}
        self._slots: dict[int, int] = {}
        self._current: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None

    def slot(self, tensor: Any) -> int:
        """The slot of a fake tensor."""
        number = self._slots.setdefault(id(tensor), len(self._slots))
        # A reference keeps the id unique.
        self.shapes.setdefault(number, tensor)
        return number

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Remember the call, and record it."""
        faked = pytree.tree_map_only(torch.Tensor, self._faked, (args, dict(kwargs or {})))
        before, self._current = self._current, (func, *faked)
        try:
            return super().__torch_dispatch__(func, types, *faked)
        finally:
            self._current = before

    def _faked(self, tensor: torch.Tensor) -> torch.Tensor:
        fake = super()._faked(tensor)
        if not isinstance(tensor, FakeTensor):
            self.given.setdefault(self.slot(fake), tensor)
        return fake

    def _record(
        self,
        call: AtenCall,
        operands: list[torch.Tensor],
        made: list[torch.Tensor],
        changed: list[torch.Tensor],
        *,
        free: bool,
    ) -> None:
        reads: dict[str, list[int]] = {}
        for item in operands:
            slots = reads.setdefault(self._names[id(item)], [])
            if self.slot(item) not in slots:
                slots.append(self.slot(item))
        super()._record(call, operands, made, changed, free=free)
        assert self._current is not None
        func, args, kwargs = self._current
        fills: list[tuple[Any, Any, int]] = []
        positional, keywords = self._emptied(list(args), fills), self._emptied(dict(kwargs), fills)
        record = self.records[-1]
        self.calls.append(
            _Replayed(
                operator=func._op,
                name=f"{call.op.partition('.')[0]}_{len(self.calls)}",
                positional=positional,
                keywords=keywords,
                fills=fills,
                reads=reads,
                makes=dict(zip(record.outputs, map(self.slot, changed or made), strict=False)),
                results=[self.slot(item) for item in made],
            )
        )

    def _emptied(self, value: Any, fills: list[tuple[Any, Any, int]]) -> Any:
        """A copy of a list or mapping without its tensors, whose places join `fills`."""
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        for key, item in entries:
            if isinstance(item, torch.Tensor):
                fills.append((copy, key, self.slot(item)))
                copy[key] = None
            elif isinstance(item, (list, tuple)):
                copy[key] = self._emptied(item, fills)
        return copy


class ReplayedNetwork:
    """The calls of `module` on `inputs`, on `device`."""

    def __init__(self, module: "torch.nn.Module", inputs: Sequence[torch.Tensor], *, device: str = "cpu") -> None:
        self._device = device
        self._example = tuple(tensor.detach().cpu() for tensor in inputs)
        module.to(device)
        recorder, self._input_slots, result = _recorded(module, [tensor.to(device) for tensor in inputs])
        self._calls, self._given, self._shapes = recorder.calls, recorder.given, recorder.shapes
        self.inputs = tuple(f"input_{number}" for number in range(len(inputs)))
        self.outputs = tuple(dict.fromkeys(recorder.name_of(item) for item in result))
        self._maker = {name: slot for call in self._calls for name, slot in call.makes.items()}
        self._maker |= dict(zip(self.inputs, self._input_slots, strict=True))
        self._output_slots = {recorder.name_of(item): recorder.slot(item) for item in result}
        self._values: dict[int, torch.Tensor] = dict(self._given)
        self._parts: list[list[tuple[_Replayed, tuple[int, ...]]]] = []
        self._arrivals: dict[str, list[tuple[int, torch.Tensor]]] = {}
        self._shared: Mapping[str, Any] = {}

    def adopt(self, kernels: Sequence[NamedKernel], inputs: Sequence[str]) -> None:
        """Check that the calls are those of the captured graph; their names follow from their order."""
        names = [(call.name, *call.makes) for call in self._calls]
        if names != [(one.name, *one.outputs) for one in kernels] or self.inputs != tuple(inputs):
            raise MeasurementError("torch makes other calls here than the captured graph has")

    def example(self) -> tuple[Any, ...]:
        """The inputs of the module as arrays."""
        return tuple(tensor.numpy() for tensor in self._example)

    def survey(self, feeds: Sequence[Any], tensors: Sequence[str]) -> Survey:
        """Make every call once, and read each tensor right after the call that makes it."""
        wanted = set(tensors)
        prints: dict[str, Fingerprint] = {}
        values = dict(self._given)
        for name, slot, feed in zip(self.inputs, self._input_slots, feeds, strict=True):
            prints[name] = fingerprint(feed)
            values[slot] = torch.from_numpy(feed).to(self._device)
        with torch.inference_mode(), refusal():
            for call in self._calls:
                _make(call, values)
                for name, slot in call.makes.items():
                    if name in wanted:
                        prints[name] = fingerprint(values[slot].cpu().numpy())
        outputs = tuple(values[self._output_slots[name]].cpu().numpy() for name in self.outputs)
        return Survey(outputs=outputs, tensors=prints)

    def size_bytes(self, tensor: str) -> int:
        """The bytes of `tensor` without gaps."""
        shape = self._shapes[self._maker[tensor]]
        return int(shape.numel()) * shape.element_size()

    def divide(self, parts: Sequence[NetworkPart], shared: Mapping[str, Any], feeds: Mapping[str, Any]) -> None:
        """The calls of each part; tensors are freed after their last reader on this device, as eager code does."""
        self._shared = shared
        self._values, self._arrivals = dict(self._given), {}
        parted = [[self._calls[number] for number in sorted(part.kernels)] for part in parts]
        own = [call for calls in parted for call in calls]
        kept = {slot for part in parts for name in part.sends for slot in self._slots_of(name)}
        kept |= set(self._output_slots.values()) | set(self._given)
        for name, feed in feeds.items():
            slot = self._input_slots[self.inputs.index(name)]
            self._values[slot] = torch.from_numpy(feed).to(self._device)
            kept.add(slot)
        for name in dict.fromkeys(name for part in parts for name in part.receives):
            slots = dict.fromkeys((*(slot for call in own for slot in call.reads.get(name, ())), *self._slots_of(name)))
            self._arrivals[name] = [(slot, self._like(slot)) for slot in slots if slot in self._shapes]
            kept.update(slots)
        # Backwards, so that the first call that touches a slot is the last one to do so.
        seen: set[int] = set()
        self._parts = []
        for calls in reversed(parted):
            steps: list[tuple[_Replayed, tuple[int, ...]]] = []
            for call in reversed(calls):
                touched = dict.fromkeys((*(slot for _, _, slot in call.fills), *call.results))
                steps.append((call, tuple(slot for slot in touched if slot not in seen and slot not in kept)))
                seen.update(touched)
            self._parts.append(steps[::-1])
        self._parts.reverse()

    def run(self, part: int) -> None:
        """Make the calls."""
        values = self._values
        with torch.inference_mode():
            for call, dead in self._parts[part]:
                _make(call, values)
                for slot in dead:
                    values.pop(slot, None)
        if self._device != "cpu" and self._parts[part]:
            torch.cuda.synchronize(self._device)

    def accept(self, tensor: str) -> None:
        """Copy the bytes into tensors with the strides of the recorded pass."""
        with torch.inference_mode():
            for slot, memory in self._arrivals[tensor]:
                memory.copy_(self._plain(tensor, memory))
                self._values[slot] = memory

    def publish(self, tensor: str) -> None:
        """Copy the tensor into the shared bytes, without gaps."""
        source = self._value(tensor)
        with torch.inference_mode():
            self._plain(tensor, source).copy_(source)

    def value(self, tensor: str) -> Any:
        """A copy of the tensor as an array."""
        return self._value(tensor).cpu().numpy().copy()

    def _slots_of(self, name: str) -> list[int]:
        found = [self._maker.get(name), self._output_slots.get(name)]
        return [slot for slot in found if slot is not None]

    def _value(self, tensor: str) -> torch.Tensor:
        for slot in self._slots_of(tensor):
            if slot in self._values:
                return self._values[slot]
        raise MeasurementError(f"{tensor!r} is not on this device")

    def _like(self, slot: int) -> torch.Tensor:
        shape = self._shapes[slot]
        sizes, strides = tuple(shape.shape), tuple(shape.stride())
        if 0 in strides:
            # Several elements of an expanded tensor share one place.
            return torch.empty(sizes, dtype=shape.dtype, device=self._device)
        return torch.empty_strided(sizes, strides, dtype=shape.dtype, device=self._device)

    def _plain(self, name: str, like: torch.Tensor) -> torch.Tensor:
        """The shared bytes of `name` as a tensor of the type and shape of `like`."""
        flat = torch.from_numpy(self._shared[name])[: like.numel() * like.element_size()]
        return flat.view(like.dtype).view(like.shape)


def _make(call: _Replayed, values: dict[int, torch.Tensor]) -> None:
    for container, key, slot in call.fills:
        container[key] = values[slot]
    made = call.operator(*call.positional, **call.keywords)
    for container, key, _ in call.fills:
        container[key] = None
    if type(made) is torch.Tensor:
        values[call.results[0]] = made
    elif made is not None:
        tensors = (item for item in pytree.tree_leaves(made) if isinstance(item, torch.Tensor))
        values.update(zip(call.results, tensors, strict=False))


def _recorded(module: Any, inputs: Sequence[torch.Tensor]) -> tuple[_ReplayRecorder, list[int], list[torch.Tensor]]:
    """The calls of one forward pass on fake tensors, the slots of its inputs, and its fake results."""
    weights = {id(tensor): name for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        tensors = [fake.from_tensor(item) for item in inputs]
        recorder = _ReplayRecorder(fake, weights)
        for number, tensor in enumerate(tensors):
            recorder.name(tensor, f"input_{number}")
        slots = [recorder.slot(tensor) for tensor in tensors]
        run = torch.fx.Interpreter(module).run if isinstance(module, torch.fx.GraphModule) else module
        with fake, recorder:
            result = run(*tensors)
    return recorder, slots, [item for item in pytree.tree_leaves(result) if isinstance(item, torch.Tensor)]


def divided_network(model: str, dimensions: Mapping[str, int], *, device: str = "cpu") -> DividedNetwork:
    """Load `model` onto `device` and record its calls. Raises `UnavailableError` for a variant."""
    from opmark.models.resolve import torch_module

    variant = split_variant(model)[1]
    if variant:
        raise UnavailableError(f"networks of the variant {variant!r} are not executed in parts")
    module, inputs = torch_module(model, dimensions=dimensions)
    with refusal():
        return ReplayedNetwork(module, inputs, device=device)
