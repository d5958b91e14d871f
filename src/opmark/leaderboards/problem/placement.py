"""The answer of a placer: a device for every unit and, optionally, an order; by names and by numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from opmark.core.canonical import plain
from opmark.core.errors import PlacementError
from opmark.core.files import json_text, write_sealed
from opmark.core.reading import LARGE_BYTES
from opmark.core.schema import load
from opmark.leaderboards.problem.contiguity import returning_unit
from opmark.leaderboards.problem.graph import class_names, named_cycle
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.pipeline_schedule import PIPELINE_SCHEDULES

SCHEMA = 1
# A front has at most so many placements.
FRONT_AT_MOST = 64
# Fields that a solution file names only where they are used.
_RARE = ("schedule", "splits", "recompute", "front")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitChoice:
    """One of the ways in which a unit says that it can be split."""

    axis: str
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """A further placement of a front; its fields mean what they mean in a `Solution`."""

    device: Mapping[str, str]
    priority: Mapping[str, int] | None = None
    order: Mapping[str, tuple[str, ...]] | None = None
    replicas: Mapping[str, tuple[str, ...]] | None = None
    schedule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A placement by names.

    `priority` (larger first; default: upward rank) decides among ready units; `order`, per device, is strict: the
    device waits for its next unit. `replicas`, per device, are further devices that also hold all of its units.
    `schedule` names the order of micro-batches in a training step (default: one-f-one-b).

    `splits` divides units; then `<unit>/part0` and on, `<unit>/cut` and `<unit>/join` stand in all other fields in the
    place of the unit. `recompute` names forward units whose outputs are made again for the backward pass.

    Where the cost is that of a front (objective hypervolume), `front` has the placements beside this one.
    """

    device: Mapping[str, str]
    priority: Mapping[str, int] | None = None
    order: Mapping[str, tuple[str, ...]] | None = None
    replicas: Mapping[str, tuple[str, ...]] | None = None
    schedule: str = ""
    problem: str = ""
    placer: str = ""
    splits: Mapping[str, SplitChoice] | None = None
    recompute: tuple[str, ...] | None = None
    front: tuple[FrontPoint, ...] | None = None

    @property
    def points(self) -> "tuple[Solution, ...]":
        """The placements of a front one by one; for any other solution, itself."""
        return (replace(self, front=None), *(self._of(point) for point in self.front or ()))

    def _of(self, point: FrontPoint) -> "Solution":
        return Solution(
            device=point.device,
            priority=point.priority,
            order=point.order,
            replicas=point.replicas,
            schedule=point.schedule,
            problem=self.problem,
            placer=self.placer,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A placement by numbers: a device and a priority per unit; a strict order and replicas per device number.

    `schedule` is the name of the schedule of micro-batches, "" for the default one.
    """

    device: Integers
    priority: Integers | None = None
    order: Mapping[int, Sequence[int]] | None = None
    replicas: Mapping[int, Sequence[int]] = field(default_factory=dict)
    schedule: str = ""

    def order_rows(self, devices: int) -> tuple[Integers, Integers]:
        """The orders as compressed rows, one per device; an empty row leaves the device free to choose."""
        rows = [list((self.order or {}).get(number, ())) for number in range(devices)]
        offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        return offsets, np.array([unit for row in rows for unit in row], dtype=np.int64)


def load_solution(path: Path, problem: Problem | None = None) -> Solution:
    """The solution in `path`, of `problem` if one is given.

    Raises `ContentError` naming the file and every wrong key, `PlacementError` if it names another problem.
    """
    solution = load(path, Solution, schema=SCHEMA, sealed=True, at_most=LARGE_BYTES)
    if problem is not None and solution.problem not in {"", problem.name}:
        raise PlacementError(f"it is a solution of {solution.problem!r}, not of {problem.name!r}", where=str(path))
    return solution


def save_solution(solution: Solution, path: Path) -> None:
    """Write `solution` to `path`, whole or not at all."""
    write_sealed(path, json_text(solution_content(solution)))


def solution_content(solution: Solution) -> dict[str, Any]:
    """The content of a solution file; a schedule, splits, recomputed units and a front are named only if they exist."""
    content = {"schema": SCHEMA, **plain(solution)}
    return {key: value for key, value in content.items() if value or key not in _RARE}


def front_of(points: Sequence[Solution]) -> Solution:
    """The solution of a front: the first placement, and the others beside it. Raises `PlacementError` without any."""
    if not points:
        raise PlacementError("a front needs at least one placement")
    further = tuple(
        FrontPoint(
            device=one.device, priority=one.priority, order=one.order, replicas=one.replicas, schedule=one.schedule
        )
        for one in points[1:]
    )
    return replace(points[0], front=further or None)


def solution_of(problem: Problem, placement: Placement, *, placer: str = "") -> Solution:
    """`placement` by names."""
    names = [device.name for device in problem.cluster.devices]
    units = problem.unit_names
    device = {unit: names[number] for unit, number in zip(units, placement.device.tolist(), strict=True)}
    priority = None if placement.priority is None else dict(zip(units, placement.priority.tolist(), strict=True))
    order = None
    if placement.order is not None:
        order = {names[number]: tuple(units[unit] for unit in row) for number, row in placement.order.items()}
    replicas = {names[number]: tuple(names[other] for other in row) for number, row in placement.replicas.items()}
    return Solution(
        device=device,
        priority=priority,
        order=order,
        replicas=replicas or None,
        schedule=placement.schedule,
        problem=problem.name,
        placer=placer,
    )


def placement_of(problem: Problem, solution: Solution) -> Placement:
    """`solution` by numbers. Raises `PlacementError` naming the first thing that makes it invalid, memory aside.

    A solution that splits or recomputes units is one of its decided problem (`decisions.decided`).
    """
    if solution.recompute:
        raise PlacementError("the solution recomputes units, which this use of it does not know")
    units = {unit.name: number for number, unit in enumerate(problem.units)}
    devices = {device.name: number for number, device in enumerate(problem.cluster.devices)}
    _check_mapping("device", solution.device, units)
    chosen = np.empty(len(units), dtype=np.int64)
    for number, unit in enumerate(problem.units):
        name = solution.device[unit.name]
        if not isinstance(name, str) or name not in devices:
            raise PlacementError(f"unit {unit.name!r} is placed on {name!r}, which is no device of the cluster")
        chosen[number] = devices[name]
        if problem.cluster.devices[devices[name]].type not in unit.exec_ns:
            raise PlacementError(f"device {name!r} cannot run unit {unit.name!r}: it has no exec_ns for that type")
    _check_colocation(problem, solution)
    priority = None
    if solution.priority is not None:
        _check_mapping("priority", solution.priority, units)
        priority = np.array([_whole(unit, solution.priority[unit]) for unit in units], dtype=np.int64)
    order = None
    if solution.order is not None:
        order = _order(problem, solution.order, units, devices, chosen)
    replicas = {} if solution.replicas is None else _replicas(problem, solution.replicas, devices, chosen)
    if problem.contiguous:
        _check_contiguity(problem, chosen)
    _check_schedule(problem, solution.schedule)
    return Placement(device=chosen, priority=priority, order=order, replicas=replicas, schedule=solution.schedule)


def _check_mapping(what: str, mapping: Any, units: Mapping[str, int]) -> None:
    if not isinstance(mapping, Mapping):
        raise PlacementError(f"{what} must map every unit, not be a {type(mapping).__name__}")
    missing = [name for name in units if name not in mapping]
    if missing:
        shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise PlacementError(f"{len(missing)} of {len(units)} units have no {what}: {shown}")
    unknown = [name for name in mapping if name not in units]
    if unknown:
        raise PlacementError(f"{what} names {unknown[0]!r}, which is no unit of the problem")


def _whole(unit: str, value: Any) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise PlacementError(f"the priority of unit {unit!r} is {value}, not a number")
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not -(2**62) < value < 2**62:
        raise PlacementError(f"the priority of unit {unit!r} is {value!r}, not a whole number below 2^62")
    return int(value)


def _check_colocation(problem: Problem, solution: Solution) -> None:
    first: dict[str, str] = {}
    for unit, name in zip(problem.units, class_names(problem), strict=True):
        if not name:
            continue
        other = first.setdefault(name, unit.name)
        if solution.device[other] != solution.device[unit.name]:
            raise PlacementError(
                f"units {other!r} and {unit.name!r} must share a device (class {name!r}),"
                f" but are on {solution.device[other]!r} and {solution.device[unit.name]!r}"
            )


def _check_schedule(problem: Problem, name: Any) -> None:
    if name == "":
        return
    if not problem.in_micro_batches:
        raise PlacementError(f"schedule {name!r}: this problem has no step of micro-batches")
    if name not in PIPELINE_SCHEDULES.names():
        raise PlacementError(f"schedule: one of {', '.join(PIPELINE_SCHEDULES.names())}, not {name!r}")


def _check_contiguity(problem: Problem, chosen: Integers) -> None:
    found = returning_unit(problem, chosen)
    if found is not None:
        unit, before = (problem.units[number].name for number in found)
        device = problem.cluster.devices[int(chosen[found[0]])].name
        raise PlacementError(f"a path leaves device {device!r} and returns to it from {before!r} to {unit!r}")


def _replicas(problem: Problem, replicas: Any, devices: Mapping[str, int], chosen: Integers) -> dict[int, list[int]]:
    if not isinstance(replicas, Mapping):
        raise PlacementError(f"replicas must map devices to devices, not be a {type(replicas).__name__}")
    if any(replicas.values()) and not problem.replication:
        raise PlacementError("this problem allows no replicas")
    taken = set(chosen.tolist())
    rows: dict[int, list[int]] = {}
    for device, names in replicas.items():
        if device not in devices or devices[device] not in set(chosen.tolist()):
            raise PlacementError(f"replicas of {device!r}, which holds no unit of its own")
        for name in names:
            if name not in devices:
                raise PlacementError(f"replicas name {name!r}, which is no device of the cluster")
            if devices[name] in taken:
                raise PlacementError(f"device {name!r} cannot be a replica of {device!r}: it has units already")
            taken.add(devices[name])
            kind = problem.cluster.devices[devices[name]].type
            for number in (chosen == devices[device]).nonzero()[0].tolist():
                if kind not in problem.units[number].exec_ns:
                    raise PlacementError(f"replica {name!r} cannot run unit {problem.units[number].name!r}")
        if names:
            rows[devices[device]] = [devices[name] for name in names]
    return rows


def _order(
    problem: Problem,
    order: Any,
    units: Mapping[str, int],
    devices: Mapping[str, int],
    chosen: Integers,
) -> dict[int, list[int]]:
    if not isinstance(order, Mapping):
        raise PlacementError(f"order must map devices to units, not be a {type(order).__name__}")
    rows: dict[int, list[int]] = {}
    for device, names in order.items():
        if device not in devices:
            raise PlacementError(f"order names {device!r}, which is no device of the cluster")
        own = np.flatnonzero(chosen == devices[device]).tolist()
        row = [units.get(name, -1) for name in names]
        if sorted(row) != own:
            raise PlacementError(f"the order of device {device!r} is not a permutation of its {len(own)} units")
        rows[devices[device]] = row
    _check_deadlock(problem, rows)
    return rows


def _check_deadlock(problem: Problem, rows: Mapping[int, Sequence[int]]) -> None:
    """Refuse orders that contradict precedence or one another, naming the cycle of units that wait."""
    names = [unit.name for unit in problem.units]
    before: dict[str, list[str]] = {name: [] for name in names}
    for tensor in problem.tensors:
        if tensor.producer:
            for name in tensor.consumers:
                before[name].append(tensor.producer)
    for row in rows.values():
        for first, second in pairwise(row):
            before[names[second]].append(names[first])
    cycle = named_cycle(before)
    if cycle:
        raise PlacementError(f"the orders deadlock: {cycle}")
