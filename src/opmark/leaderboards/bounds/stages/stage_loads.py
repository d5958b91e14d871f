"""Loads of a full pipeline as vectors: what a group in a stage, and a tensor between two stages, add to every server.

A stage is a device, or several that take turns (replicas). Servers are devices and ports, by time per sample, and the
memory of devices. Times are multiples of a fraction of a nanosecond, so that the shares of replicas are whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.memory_rows import memory_rows
from opmark.leaderboards.bounds.windows import hops_ns
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.routes import hop_ns
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS
from opmark.leaderboards.search.groups import Groups

Stage = tuple[int, ...]
# The stage of a graph input's home, which is no choice.
HOME = -1
# The load of what cannot be: a tensor between devices that nothing joins.
IMPOSSIBLE = 2**50


@dataclass(frozen=True, slots=True)
class StageTensor:
    """The load that a tensor adds to the servers where one stage hands it to another, once per reading stage.

    `between` is L×L×S, or L×S from the home of a graph input. `output` (L×S, or None) is added for the way to the host
    unless a reader is in the host's stage already.
    """

    producer: int
    readers: tuple[int, ...]
    between: Integers
    output: Integers | None


@dataclass(frozen=True, slots=True)
class StageLoads:
    """The vectors of one way to join devices to stages: groups G×L×S, capacities S per unit of cost and fixed.

    A server is not too busy if its load is at most `rate` x cost + `room`. `host` is the host's stage.
    """

    stages: tuple[Stage, ...]
    allowed: npt.NDArray[np.bool_]
    group: Integers
    tensors: tuple[StageTensor, ...]
    rate: Integers
    room: Integers
    host: int

    def most(self) -> Integers:
        """S: no way puts more than this on a server."""
        found: Integers = self.group.max(axis=1).sum(axis=0)
        for tensor in self.tensors:
            to_each = tensor.between if tensor.producer == HOME else tensor.between.max(axis=0)
            found = found + to_each.sum(axis=0)
            if tensor.output is not None:
                found = found + tensor.output.max(axis=0)
        return found

    def of_servers(self, servers: Integers) -> "StageLoads":
        """The same for some of the servers."""
        tensors = tuple(
            replace(
                tensor,
                between=tensor.between[..., servers],
                output=None if tensor.output is None else tensor.output[:, servers],
            )
            for tensor in self.tensors
        )
        return replace(
            self, group=self.group[..., servers], tensors=tensors, rate=self.rate[servers], room=self.room[servers]
        )


class StageLoader:
    """Makes the vectors of one problem for any stages."""

    def __init__(self, problem: Problem, groups: Groups) -> None:
        self.problem, self.groups = problem, groups
        self.arrays = problem.arrays
        self.ports = int(self.arrays.sizes.ports)
        # Shares of samples are multiples of one part.
        self.parts = lcm(*range(1, self.arrays.devices + 1)) if problem.replication else 1
        self.memory = [] if problem.replication else memory_rows(problem, groups)
        self.servers = self.arrays.devices + self.ports + len(self.memory)

    def loads(self, stages: Sequence[Stage]) -> StageLoads:
        """The vectors for `stages`, which are disjoint."""
        arrays = self.arrays
        rate = np.zeros(self.servers, dtype=np.int64)
        rate[: arrays.devices] = arrays.device_slots * self.parts
        rate[arrays.devices : arrays.devices + self.ports] = self.parts
        room = np.zeros(self.servers, dtype=np.int64)
        for number, row in enumerate(self.memory):
            room[arrays.devices + self.ports + number] = row.capacity_bytes
        allowed = np.array([self.groups.allowed[:, list(stage)].all(axis=1) for stage in stages]).T
        group = np.zeros((self.groups.count, len(stages), self.servers), dtype=np.int64)
        for label, stage in enumerate(stages):
            for device in stage:
                group[:, label, device] = np.maximum(self.groups.run_ns[:, device], 0) * (self.parts // len(stage))
            if len(stage) > 1:
                for number in range(self.groups.count):
                    group[number, label] += self._synchronised(number, stage)
        self._add_memory(group, stages)
        host = next((label for label, stage in enumerate(stages) if arrays.host in stage), HOME)
        tensors = tuple(self._tensors(stages, host))
        return StageLoads(tuple(stages), allowed, group, tensors, rate, room, host)

    def _add_memory(self, group: Integers, stages: Sequence[Stage]) -> None:
        """Add the bytes that depend on one group alone; without the rest a row is only weaker."""
        for number, row in enumerate(self.memory):
            label = stages.index((row.device,))
            for item in row.kept:
                if len(item.wanted) == 1 and len(item.wanted[0]) == 1:
                    (own,) = item.wanted[0]
                    group[own, label, self.arrays.devices + self.ports + number] += item.size_bytes

    def _synchronised(self, number: int, stage: Stage) -> Integers:
        """The messages about the weights that the group's own update units name."""
        problem = self.problem
        found = np.zeros(self.servers, dtype=np.int64)
        names = {
            name
            for unit in self.groups.members[number]
            if problem.units[unit].phase == "update"
            for name in problem.units[unit].weights
        }
        for name in sorted(names & self._of_one_group()):
            for messages in SYNCHRONISATIONS.load(problem.synchronisation).rounds(len(stage), problem.weights[name]):
                for source, destination, size in messages:
                    route = self._route(stage[source], stage[destination])
                    if not route:
                        found[0] += IMPOSSIBLE
                    for link in route:
                        share = hop_ns(problem.cluster.links[link], size) * (self.parts // len(stage))
                        self._occupy(found, link, share)
        return found

    def _of_one_group(self) -> set[str]:
        """Weights that the update units of a single group name: those of several are synchronised once for all."""
        users: dict[str, set[int]] = {}
        for unit, group in zip(self.problem.units, self.groups.of_unit.tolist(), strict=True):
            for name in unit.weights if unit.phase == "update" else ():
                users.setdefault(name, set()).add(group)
        return {name for name, using in users.items() if len(using) == 1}

    def _tensors(self, stages: Sequence[Stage], host: int) -> Iterator[StageTensor]:
        arrays, of_unit = self.arrays, self.groups.of_unit
        for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
            first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
            readers = set(of_unit[arrays.consumer_units[first:last]].tolist())
            own = int(of_unit[maker]) if maker >= 0 else HOME
            readers -= {own}
            output = None
            makers = list(stages) if maker >= 0 else [(int(arrays.tensor_home[tensor]),)]
            if arrays.tensor_output[tensor] and maker >= 0 and (host == HOME or len(stages[host]) == 1 or not readers):
                output = np.array([self._turns(tensor, stage, (arrays.host,)) for stage in makers])
            if not readers and output is None:
                continue
            table = np.array([[self._turns(tensor, one, other) for other in stages] for one in makers])
            if maker >= 0:
                table[np.arange(len(stages)), np.arange(len(stages))] = 0
            yield StageTensor(own, tuple(sorted(readers)), table if maker >= 0 else table[0], output)

    def _turns(self, tensor: int, makers: Stage, readers: Stage) -> Integers:
        """Sample s goes from maker s mod m to reader s mod r."""
        found = np.zeros(self.servers, dtype=np.int64)
        period = lcm(len(makers), len(readers))
        for sample in range(period):
            source, destination = makers[sample % len(makers)], readers[sample % len(readers)]
            if source != destination:
                route = self._route(source, destination)
                if not route:
                    found[0] += IMPOSSIBLE
                for link, ns in zip(route, hops_ns(self.arrays, tensor, route, (source, destination)), strict=True):
                    self._occupy(found, link, ns * (self.parts // period))
        return found

    def _route(self, source: int, destination: int) -> list[int]:
        arrays = self.arrays
        number = source * arrays.devices + destination
        route: list[int] = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]].tolist()
        return route

    def _occupy(self, found: Integers, link: int, share: int) -> None:
        """A hop holds its port, and each end whose copies block."""
        arrays = self.arrays
        found[arrays.devices + int(arrays.link_port[link])] += share
        for end in {int(arrays.link_source[link]), int(arrays.link_destination[link])}:
            if arrays.device_blocking[end]:
                found[end] += share
