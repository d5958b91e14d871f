"""Recomputed units: forward units whose outputs are not kept, but made again when the backward pass needs them.

Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019, section
2.3: a stage keeps only what it was handed, and computes its forward pass again before its backward pass. Chen et al.,
"Training deep nets with sublinear memory cost", 2016, has the idea.
"""

from collections.abc import Iterable
from dataclasses import replace

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem


def recomputed(problem: Problem, solution: Solution) -> tuple[Problem, Solution]:
    """The problem in which every unit of `solution.recompute` runs once more, as `<unit>/again`, on the same device.

    Backward units read what it makes the second time. It waits until the backward pass reaches its device: for the
    gradients that come from elsewhere. Under `stash` memory the first outputs that stay on the device take no room,
    since the room of the second ones is there anyway. Raises `PlacementError` for a unit that is no forward unit, and
    beside priorities or orders, which could not name the new units.
    """
    again = _checked(problem, solution)
    device = solution.device
    phase = {unit.name: unit.phase for unit in problem.units}
    tensors: list[Tensor] = []
    for tensor in problem.tensors:
        made = tensor.producer in again
        late = [name for name in tensor.consumers if made and phase[name] != "forward"]
        second = list(late)
        first = [name for name in tensor.consumers if name not in late]
        for name in [one for one in first if one in again]:
            near = made and device.get(name) == device.get(tensor.producer)
            (second if near else first).append(again_name(name))
        away = tensor.output or any(device.get(name) != device.get(tensor.producer) for name in first)
        size = 0 if made and problem.memory_mode == "stash" and not away else tensor.size_bytes
        tensors.append(replace(tensor, consumers=tuple(first), size_bytes=size))
        if second:
            copy = Tensor(
                name=again_name(tensor.name),
                size_bytes=tensor.size_bytes,
                producer=again_name(tensor.producer),
                consumers=tuple(second),
                boundary_ns=tensor.boundary_ns,
            )
            tensors.append(copy)
    units = [*problem.units, *(_copy(unit) for unit in problem.units if unit.name in again)]
    for name in sorted({str(device.get(unit)) for unit in again}):
        own = [again_name(unit) for unit in sorted(again) if device.get(unit) == name]
        tensors += _triggers(tensors, {unit.name: unit.phase for unit in units}, own, name)
    where = {**device, **{again_name(unit): device[unit] for unit in again if unit in device}}
    wide = replace(problem, units=tuple(units), tensors=tuple(tensors), reference=None)
    return wide, replace(solution, device=where, recompute=None)


def again_name(name: str) -> str:
    """The name of a unit's second run, and of what it makes."""
    return f"{name}/again"


def _checked(problem: Problem, solution: Solution) -> set[str]:
    again = set(solution.recompute or ())
    phase = {unit.name: unit.phase for unit in problem.units}
    for name in sorted(again):
        if phase.get(name) != "forward":
            raise PlacementError(f"recompute names {name!r}, which is no forward unit of the problem")
    if solution.priority is not None or solution.order is not None:
        raise PlacementError("a solution that recomputes units takes the default priorities and no order")
    if any(again_name(name) in phase for name in again):
        raise PlacementError("recompute: a unit is called like a second run already")
    return again


def _copy(unit: Unit) -> Unit:
    return replace(unit, name=again_name(unit.name), phase="backward", splits=())


def _triggers(tensors: Iterable[Tensor], phase: dict[str, str], own: list[str], device: str) -> list[Tensor]:
    """Signals from the backward units elsewhere whose gradients the first backward units of this device wait for."""
    after: dict[str, set[str]] = {}
    for tensor in tensors:
        after.setdefault(tensor.producer, set()).update(tensor.consumers)
    behind: set[str] = set(own)
    front = list(own)
    while front:
        fresh = after.get(front.pop(), set()) - behind
        behind |= fresh
        front += sorted(fresh)
    readers = {name for unit in own for name in after.get(unit, ())} - set(own)
    makers = [
        tensor.producer
        for tensor in tensors
        if phase.get(tensor.producer) == "backward"
        and tensor.producer not in behind
        and readers.intersection(tensor.consumers)
    ]
    return [
        Tensor(name=f"{maker}/again on {device}", size_bytes=0, producer=maker, consumers=tuple(own))
        for maker in dict.fromkeys(makers)
    ]
