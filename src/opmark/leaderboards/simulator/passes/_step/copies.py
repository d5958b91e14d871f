"""The graph of a whole training step: forward and backward once per micro-batch, gradients summed, one update."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.integers import Integers, rows
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS

DIRECTIONS = ("down", "up")


@dataclass(frozen=True, kw_only=True)
class StepCopies:
    """The step as a problem of its own, and per copied unit what it is a copy of.

    `unit_of` is -1 for sums of gradients and messages between the two pipelines, which take no time and lie where unit
    `like` lies. `micro_batch` is -1 for what happens once, after the last backward pass; `lane` is the pipeline.
    Row k of `turn_units` from `turn_starts[k]` on are the units whose place within a pass decides that of copy k: its
    own, or those of all updates that wait for a sum.
    """

    problem: Problem
    unit_of: Integers
    like: Integers
    micro_batch: Integers
    lane: Integers
    turn_starts: Integers
    turn_units: Integers

    def places(self, sequence: Integers) -> Integers:
        """Per copy its place within a pass, from the place of every unit."""
        found: Integers = np.minimum.reduceat(sequence[self.turn_units], self.turn_starts)
        return found


def step_copies(problem: Problem, directions: Sequence[int], first: Sequence[int]) -> StepCopies:
    """The step in which micro-batch m passes pipeline `directions[m]`; `first` are those that come back first.

    A gradient is summed where it is made: room for it is taken by the `first` micro-batch of a pipeline, and the sum
    goes on once all have come back. With two pipelines the sums are synchronised between them, each then updates.
    """
    key = ("step_copies", tuple(directions), tuple(first))
    known = problem.worked_out.get(str(key))
    if not isinstance(known, StepCopies):
        known = problem.worked_out[str(key)] = _Builder(problem, directions, first).build()
    return known


class _Builder:
    def __init__(self, problem: Problem, directions: Sequence[int], first: Sequence[int]) -> None:
        self.problem = problem
        self.directions = directions
        self.first = set(first)
        self.lanes = sorted(set(directions))
        self.ends = ("step",) if len(self.lanes) == 1 else DIRECTIONS
        self.number = {unit.name: index for index, unit in enumerate(problem.units)}
        self.phase = {unit.name: unit.phase for unit in problem.units}
        self.free = {device.type: 0 for device in problem.cluster.devices}
        self.units: list[Unit] = []
        self.facts: list[tuple[int, int, int, int]] = []
        self.turns: list[list[int]] = []
        self.tensors: list[Tensor] = []

    def build(self) -> StepCopies:
        for micro_batch, lane in enumerate(self.directions):
            for unit in self.problem.units:
                if unit.phase != "update":
                    self._add(unit, f"{unit.name}@{micro_batch}", (micro_batch, lane))
        for lane in range(len(self.lanes)):
            for unit in self.problem.units:
                if unit.phase == "update":
                    self._add(unit, self._end(unit.name, lane), (-1, lane))
        for tensor in self.problem.tensors:
            self._spread(tensor)
        wide = replace(
            self.problem,
            units=tuple(self.units),
            tensors=tuple(self.tensors),
            objective="latency",
            unit="ns",
            micro_batches=0,
            contiguous=False,
            replication=False,
            reference=None,
        )
        columns = np.array(self.facts, dtype=np.int64).T
        unit_of, like, micro, lanes = (np.ascontiguousarray(column) for column in columns)
        offsets, turn_units = rows(self.turns)
        return StepCopies(
            problem=wide,
            unit_of=unit_of,
            like=like,
            micro_batch=micro,
            lane=lanes,
            turn_starts=offsets[:-1],
            turn_units=turn_units,
        )

    def _end(self, name: str, lane: int) -> str:
        return f"{name}@{self.ends[lane]}"

    def _add(self, unit: Unit, name: str, where: tuple[int, int]) -> None:
        self.units.append(replace(unit, name=name, colocation=""))
        number = self.number[unit.name]
        self.facts.append((number, number, *where))
        self.turns.append([number])

    def _add_free(self, name: str, kind: str, like: str, lane: int, waiting: Sequence[str]) -> None:
        self.units.append(Unit(name=name, exec_ns=self.free, phase="update", kind=kind))
        self.facts.append((-1, self.number[like], -1, lane))
        self.turns.append([self.number[unit] for unit in waiting])

    def _spread(self, tensor: Tensor) -> None:
        updates = [name for name in tensor.consumers if self.phase[name] == "update"]
        readers = [name for name in tensor.consumers if self.phase[name] != "update"]
        if self.phase.get(tensor.producer) == "update":
            for lane in range(len(self.lanes)):
                self.tensors.append(
                    replace(
                        tensor,
                        name=self._end(tensor.name, lane),
                        producer=self._end(tensor.producer, lane),
                        consumers=tuple(self._end(name, lane) for name in updates),
                        output=tensor.output and lane == 0,
                    )
                )
            return
        if not tensor.producer:
            self._input(tensor, readers, updates)
            return
        for micro_batch, lane in enumerate(self.directions):
            total = (f"Σ {self._end(tensor.name, lane)}",) if updates else ()
            opens = micro_batch in self.first
            own = tuple(f"{name}@{micro_batch}" for name in readers)
            producer = f"{tensor.producer}@{micro_batch}"
            if own or opens or not updates or tensor.output:
                self.tensors.append(
                    replace(
                        tensor,
                        name=f"{tensor.name}@{micro_batch}",
                        producer=producer,
                        consumers=(*own, *(total if opens else ())),
                    )
                )
            if total and not opens:
                added = f"{tensor.name}@{micro_batch}+"
                self.tensors.append(Tensor(name=added, size_bytes=0, producer=producer, consumers=total))
        if updates:
            self._sum(tensor, updates)

    def _input(self, tensor: Tensor, readers: Sequence[str], updates: Sequence[str]) -> None:
        """Every micro-batch has inputs of its own; what updates read is there once."""
        if readers or tensor.output or not updates:
            for micro_batch in range(len(self.directions)):
                own = tuple(f"{name}@{micro_batch}" for name in readers)
                self.tensors.append(replace(tensor, name=f"{tensor.name}@{micro_batch}", consumers=own))
        if updates:
            ends = tuple(self._end(name, lane) for lane in range(len(self.lanes)) for name in updates)
            self.tensors.append(replace(tensor, name=f"{tensor.name}@step", consumers=ends, output=False))

    def _sum(self, tensor: Tensor, updates: Sequence[str]) -> None:
        """The sum of each pipeline, the messages between them, and the sum that updates read."""
        last = []
        for lane in range(len(self.lanes)):
            last.append(f"Σ {self._end(tensor.name, lane)}")
            self._add_free(last[lane], "sum", tensor.producer, lane, updates)
        method = SYNCHRONISATIONS.load(self.problem.synchronisation)
        for step, messages in enumerate(method.rounds(len(self.lanes), tensor.size_bytes)):
            now = [f"{tensor.name}~{step}@{word}" for word in self.ends]
            for lane, name in enumerate(now):
                self._add_free(name, "synchronisation", tensor.producer, lane, updates)
                held = Tensor(name=f"{name}<", size_bytes=0, producer=last[lane], consumers=(name,))
                self.tensors.append(held)
            for index, (source, destination, size) in enumerate(messages):
                said = f"{tensor.name}~{step}:{index}"
                self.tensors.append(
                    Tensor(name=said, size_bytes=size, producer=last[source], consumers=(now[destination],))
                )
            last = now
        for lane in range(len(self.lanes)):
            readers = tuple(self._end(name, lane) for name in updates)
            total = f"Σ {self._end(tensor.name, lane)}"
            made = replace(tensor, name=self._end(tensor.name, lane), producer=total, consumers=readers, output=False)
            self.tensors.append(made)
            if last[lane] != total:
                agreed = Tensor(name=f"{made.name}~", size_bytes=0, producer=last[lane], consumers=readers)
                self.tensors.append(agreed)
