"""Replicas that share one pass: every unit of a replicated device in parts, and the gradients they must agree on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The problem of the parts and their placement; `part_of` is each unit's original number, -1 for an exchange."""

    problem: Problem
    placement: Placement
    part_of: Integers


def expand(problem: Problem, placement: Placement) -> Expansion:
    """Every forward and backward unit of a replicated device as equal parts of the batch, one per replica.

    A part takes the unit's `split_ns` and hands on its slice of each tensor; a reader gets the slices of its own share.
    Update units run whole on every replica, once the gradients they read were synchronised: each message is a
    transfer between units that take no time. Raises `PlacementError` where a unit has no time for such a part.
    """
    return _Expander(problem, placement).expansion()


class _Expander:
    def __init__(self, problem: Problem, placement: Placement) -> None:
        self.problem = problem
        self.placement = placement
        self.number = {unit.name: index for index, unit in enumerate(problem.units)}
        place = placement.device.tolist()
        self.members = {
            unit.name: [place[index], *placement.replicas.get(place[index], ())]
            for index, unit in enumerate(problem.units)
        }
        self.units: list[Unit] = []
        self.tensors: list[Tensor] = []
        self.device: list[int] = []
        self.part_of: list[int] = []
        # Exchanges that must stand before an update unit where devices keep a strict order.
        self.before: dict[str, list[list[str]]] = {}
        self.priority: list[int] = []

    def expansion(self) -> Expansion:
        for unit in self.problem.units:
            for position, device in enumerate(self.members[unit.name]):
                self._add(self._part(unit, position, device), device, self.number[unit.name])
        for tensor in self.problem.tensors:
            self._spread(tensor)
        wide = replace(
            self.problem,
            units=tuple(self.units),
            tensors=tuple(self.tensors),
            reference=None,
            contiguous=False,
            replication=False,
        )
        numbers = {unit.name: index for index, unit in enumerate(self.units)}
        order = self.placement.order
        placed = Placement(
            device=np.array(self.device, dtype=np.int64),
            priority=None if self.placement.priority is None else np.array(self.priority, dtype=np.int64),
            order=None if order is None else dict(self._orders(numbers)),
            schedule=self.placement.schedule,
        )
        return Expansion(problem=wide, placement=placed, part_of=np.array(self.part_of, dtype=np.int64))

    def _add(self, unit: Unit, device: int, original: int, like: int = -1) -> None:
        self.units.append(unit)
        self.device.append(device)
        self.part_of.append(original)
        if self.placement.priority is not None:
            self.priority.append(int(self.placement.priority[original if original >= 0 else like]))

    def _part(self, unit: Unit, position: int, device: int) -> Unit:
        count = len(self.members[unit.name])
        if count == 1:
            return replace(unit, colocation="")
        name, kind = _name(unit.name, position), self.problem.cluster.devices[device].type
        if unit.phase == "update":
            return replace(unit, name=name, colocation="")
        row = unit.split_ns.get(kind, ())
        if len(row) < count - 1:
            raise PlacementError(f"unit {unit.name!r} has no time for one of {count} parts on {kind!r}")
        parts = {kind: row[count - 2]}
        known = {name: both for name, both in unit.interval.items() if name == kind}
        share = -(-unit.workspace_bytes // count)
        return replace(
            unit, name=name, exec_ns=parts, split_ns={}, interval=known, workspace_bytes=share, colocation=""
        )

    def _spread(self, tensor: Tensor) -> None:
        """The slices of a tensor; what updates of its own replicated device read is synchronised instead."""
        makers = self.members.get(tensor.producer, [-1])
        whole = [
            name
            for name in tensor.consumers
            if len(makers) > 1
            and self.problem.units[self.number[name]].phase == "update"
            and self.members[name] == makers
        ]
        sliced = [name for name in tensor.consumers if name not in whole]
        if whole:
            self._synchronise(tensor, makers, whole)
        if not sliced and whole and not tensor.output:
            return
        everything = {name for name in sliced if self.problem.units[self.number[name]].phase == "update"}
        counts = [len(self.members[name]) for name in sliced if name not in everything]
        pieces = lcm(len(makers), *counts)
        slices: dict[tuple[int, tuple[str, ...]], int] = {}
        for piece in range(pieces):
            readers = []
            for name in sliced:
                count = len(self.members[name])
                shares = range(count) if name in everything else (piece * count // pieces,)
                readers += [self._reader(name, share) for share in shares]
            key = (piece * len(makers) // pieces, tuple(readers))
            slices[key] = slices.get(key, 0) + 1
        for index, ((maker, names), count) in enumerate(slices.items()):
            self.tensors.append(
                replace(
                    tensor,
                    name=tensor.name if len(slices) == 1 else f"{tensor.name}[{index}]",
                    size_bytes=-(-tensor.size_bytes * count // pieces),
                    producer=self._reader(tensor.producer, maker) if tensor.producer else "",
                    consumers=names,
                    boundary_ns={kind: ns * count / pieces for kind, ns in tensor.boundary_ns.items()},
                )
            )

    def _reader(self, name: str, position: int) -> str:
        return _name(name, position) if len(self.members[name]) > 1 else name

    def _synchronise(self, tensor: Tensor, makers: Sequence[int], updates: Sequence[str]) -> None:
        """Every replica keeps its own gradient until the update; messages go round by round."""
        method = SYNCHRONISATIONS.load(self.problem.synchronisation)
        rounds = method.rounds(len(makers), tensor.size_bytes)
        kinds = {device.type: 0 for device in self.problem.cluster.devices}
        chains: list[list[str]] = [[] for _ in makers]
        last = [_name(tensor.producer, position) for position in range(len(makers))]
        for step, messages in enumerate(rounds):
            now = [f"{tensor.name}~{step}#{position}" for position in range(len(makers))]
            for position, device in enumerate(makers):
                exchange = Unit(name=now[position], exec_ns=kinds, phase="update", kind="synchronisation")
                self._add(exchange, device, -1, self.number[updates[0]])
                chains[position].append(now[position])
                self._signal(f"{now[position]}<", last[position], now[position], 0)
            for index, (source, destination, size) in enumerate(messages):
                self._signal(f"{tensor.name}~{step}:{index}", last[source], now[destination], size)
            last = now
        for position in range(len(makers)):
            readers = tuple(_name(name, position) for name in updates)
            made = replace(
                tensor,
                name=f"{tensor.name}#{position}",
                producer=_name(tensor.producer, position),
                consumers=readers,
                output=False,
            )
            self.tensors.append(made)
            if rounds:
                done = f"{tensor.name}~#{position}"
                self.tensors.append(Tensor(name=done, size_bytes=0, producer=last[position], consumers=readers))
        self.before.setdefault(updates[0], []).extend([list(names) for names in zip(*chains, strict=True)])

    def _signal(self, name: str, source: str, destination: str, size_bytes: int) -> None:
        self.tensors.append(Tensor(name=name, size_bytes=size_bytes, producer=source, consumers=(destination,)))

    def _orders(self, numbers: dict[str, int]) -> Iterator[tuple[int, list[int]]]:
        for primary, row in (self.placement.order or {}).items():
            names = [self.problem.units[unit].name for unit in row]
            members = [primary, *self.placement.replicas.get(primary, ())]
            for position, device in enumerate(members):
                kept = []
                for name in names:
                    if len(members) > 1:
                        kept += [numbers[step[position]] for step in self.before.get(name, ())]
                    kept.append(numbers[self._reader(name, position)])
                yield device, kept


def _name(unit: str, position: int) -> str:
    return f"{unit}#{position}"
