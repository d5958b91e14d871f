"""Split units: the problem with parts, a cut and a join in the place of each.

Jia, Zaharia, Aiken, "Beyond data and model parallelism for deep neural networks", MLSys 2019, section 4: an operation
is divided along a dimension of its output, and every part is an operation of its own. Nothing is free: parts cost what
the problem says of the smaller kernel, and so do cutting their inputs and joining their outputs.
"""

from collections.abc import Mapping
from dataclasses import replace

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import SAMPLE, Tensor, Unit, UnitSplit
from opmark.leaderboards.problem.graph import class_names
from opmark.leaderboards.problem.problem import Problem

# The chosen split of each split unit.
Chosen = Mapping[str, UnitSplit]


def split_problem(problem: Problem, chosen: Chosen) -> Problem:
    """`problem` with the units of `chosen` in parts, called `<unit>/part0` and on, `<unit>/cut` and `<unit>/join`.

    Neighbours in equally many parts along the samples hand on part to part; everything else is joined first. Raises
    `PlacementError` where a unit must share a device with others, or where a name is taken.
    """
    if not chosen:
        return problem
    _check(problem, chosen)
    tensors = [row for tensor in problem.tensors for row in _tensors(tensor, chosen)]
    joined = {tensor.producer for tensor in tensors}
    weights = dict(problem.weights)
    units: list[Unit] = []
    names: dict[str, tuple[str, ...]] = {}
    for unit in problem.units:
        rows = _units(unit, chosen[unit.name], weights, joined) if unit.name in chosen else [unit]
        names[unit.name] = tuple(row.name for row in rows)
        units += rows
    taken = [unit.name for unit in units]
    if len(set(taken)) < len(taken):
        twice = next(name for name in taken if taken.count(name) > 1)
        raise PlacementError(f"splits: a unit is called {twice!r} already")
    streams = tuple(
        replace(stream, units=tuple(name for unit in stream.units for name in names[unit]))
        for stream in problem.arrivals
    )
    return replace(
        problem, units=tuple(units), tensors=tuple(tensors), weights=weights, arrivals=streams, reference=None
    )


def part_name(unit: str, number: int) -> str:
    """The name of one part of a split unit."""
    return f"{unit}/part{number}"


def join_name(unit: str) -> str:
    """The name of the unit that puts the parts' outputs together."""
    return f"{unit}/join"


def cut_name(unit: str) -> str:
    """The name of the unit that cuts the inputs."""
    return f"{unit}/cut"


def _check(problem: Problem, chosen: Chosen) -> None:
    for unit, name in zip(problem.units, class_names(problem), strict=True):
        if unit.name in chosen and name:
            raise PlacementError(f"splits: unit {unit.name!r} shares a device with others (class {name!r})")


def _units(unit: Unit, split: UnitSplit, weights: dict[str, int], joined: set[str]) -> list[Unit]:
    """The cut, the parts and the join of one unit; pieces of its weights are added to `weights`."""
    usual = replace(unit, split_ns={}, splits=(), workspace_bytes=0)
    rows = []
    if split.cut_ns:
        rows.append(_costing(replace(usual, name=cut_name(unit.name), weights=()), split.cut_ns))
    for number in range(split.parts):
        held = unit.weights
        if split.weight_share < 1:
            held = tuple(f"{name}/part{number}of{split.parts}" for name in unit.weights)
            weights |= {
                piece: -int(-weights[name] * split.weight_share // 1)
                for name, piece in zip(unit.weights, held, strict=True)
            }
        part = replace(usual, name=part_name(unit.name, number), weights=held)
        rows.append(_costing(replace(part, workspace_bytes=-(-unit.workspace_bytes // split.parts)), split.exec_ns))
    if join_name(unit.name) in joined:
        rows.append(_costing(replace(usual, name=join_name(unit.name), weights=()), split.join_ns))
    return rows


def _costing(unit: Unit, times: Mapping[str, int | float]) -> Unit:
    known = {kind: both for kind, both in unit.interval.items() if kind in times}
    return replace(unit, exec_ns=times, interval=known)


def _tensors(tensor: Tensor, chosen: Chosen) -> list[Tensor]:
    """One tensor as pieces of its producer, the joined whole, and slices for the parts of its readers."""
    made = chosen.get(tensor.producer)
    direct = [name for name in tensor.consumers if made is not None and _aligned(made, chosen.get(name))]
    others = [name for name in tensor.consumers if name not in direct]
    rows: list[Tensor] = []
    source = tensor.producer
    if made is not None:
        whole = bool(others) or tensor.output
        source = join_name(tensor.producer)
        for number in range(made.parts):
            readers = [part_name(name, number) for name in direct] + ([source] if whole else [])
            rows.append(
                _share(
                    tensor,
                    f"{tensor.name}/part{number}",
                    1 / made.parts,
                    part_name(tensor.producer, number),
                    tuple(readers),
                )
            )
        if not whole:
            return rows
    readers = []
    slices: list[Tensor] = []
    for name in others:
        split = chosen.get(name)
        if split is None:
            readers.append(name)
        elif split.input_share >= 1:
            readers += [part_name(name, number) for number in range(split.parts)]
        else:
            maker = cut_name(name) if split.cut_ns else source
            readers += [maker] if split.cut_ns else []
            slices += [
                _share(
                    tensor,
                    f"{tensor.name}/{name}/part{number}",
                    split.input_share,
                    maker,
                    (part_name(name, number),),
                )
                for number in range(split.parts)
            ]
    if readers or tensor.output or not slices:
        rows.append(replace(tensor, producer=source, consumers=tuple(readers)))
    return rows + slices


def _aligned(made: UnitSplit, read: UnitSplit | None) -> bool:
    """True where part k of the reader needs what part k of the producer makes, and nothing else of the tensor."""
    return read is not None and made.axis == read.axis == SAMPLE and made.parts == read.parts and not read.cut_ns


def _share(tensor: Tensor, name: str, share: float, producer: str, consumers: tuple[str, ...]) -> Tensor:
    paid = {kind: ns * share for kind, ns in tensor.boundary_ns.items()}
    size = -int(-tensor.size_bytes * share // 1)
    home = "" if producer else tensor.home
    return Tensor(name=name, size_bytes=size, producer=producer, consumers=consumers, home=home, boundary_ns=paid)
