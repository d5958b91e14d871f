"""Busy time per sample of every server of a full pipeline: devices, and the ports that transfers hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.routes import hop_ns
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """ns per sample: per device, its slots sharing the work evenly, and per port."""

    device_ns: tuple[Fraction, ...]
    port_ns: tuple[Fraction, ...]

    @property
    def bottleneck_ns(self) -> Fraction:
        """The busiest server: a new sample can start this often."""
        return max((*self.device_ns, *self.port_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLoads:
    """ns per sample for which transfers hold each device, whose copies block, and each port."""

    device_ns: tuple[int | Fraction, ...]
    port_ns: tuple[int | Fraction, ...]


def server_loads(problem: Problem, placement: Placement, profile: PublishedModel) -> Loads:
    """The load of every server.

    Replicas serve samples in turn: each runs its share of the stage's units, and carries the transfers of its samples.
    Updated weights of a replicated stage are synchronised once per turn of all replicas. Raises `PlacementError` if a
    tensor has no route.
    """
    return loads_beside(problem, placement, profile, transfer_loads(problem, placement, profile))


def loads_beside(problem: Problem, placement: Placement, profile: PublishedModel, transfers: TransferLoads) -> Loads:
    """As `server_loads` where the transfers of the placement are known: they do not depend on the times of units."""
    arrays, device = problem.arrays, list(transfers.device_ns)
    for primary, members in _stages(problem, placement).items():
        own = arrays.run_ns[placement.device == primary]
        for member in members:
            device[member] += _shared(int(own[:, member].sum()), len(members))
    slots = arrays.device_slots.tolist()
    spread = tuple(Fraction(load) / count for load, count in zip(device, slots, strict=True))
    return Loads(device_ns=spread, port_ns=tuple(map(Fraction, transfers.port_ns)) if profile.contention else ())


def transfer_loads(problem: Problem, placement: Placement, profile: PublishedModel) -> TransferLoads:
    """The load of every server by transfers alone. Raises `PlacementError` if a tensor has no route."""
    arrays, stages = problem.arrays, _stages(problem, placement)
    device: list[int | Fraction] = [0] * arrays.devices
    port: list[int | Fraction] = [0] * int(arrays.sizes[5])
    for source, destination, tensor, part in _passages(problem, placement, stages):
        for link, duration in _hops(problem, source, destination, tensor):
            _occupy(problem, profile, device, port, (link, duration * part))
    for primary, members in stages.items():
        if len(members) > 1:
            for source, destination, size in _messages(problem, placement, primary, len(members)):
                route = _route(problem, members[source], members[destination], "a gradient")
                for link in route:
                    share = _shared(hop_ns(problem.cluster.links[link], size), len(members))
                    _occupy(problem, profile, device, port, (link, share))
    return TransferLoads(device_ns=tuple(device), port_ns=tuple(port))


def _stages(problem: Problem, placement: Placement) -> dict[int, list[int]]:
    """By device, itself and its replicas."""
    return {number: [number, *placement.replicas.get(number, ())] for number in range(problem.arrays.devices)}


def _shared(time_ns: int, replicas: int) -> int | Fraction:
    """The share of one replica. Whole numbers stay whole: fractions are a hundred times as slow."""
    return time_ns if replicas == 1 else Fraction(time_ns, replicas)


def _passages(
    problem: Problem, placement: Placement, stages: dict[int, list[int]]
) -> Iterator[tuple[int, int, int, int | Fraction]]:
    """(source, destination, tensor, share of the samples) of every transfer: once per tensor and reading stage."""
    numbers = {unit.name: index for index, unit in enumerate(problem.units)}
    names = {device.name: index for index, device in enumerate(problem.cluster.devices)}
    host = names[problem.host]
    place = placement.device.tolist()
    for index, tensor in enumerate(problem.tensors):
        made = tensor.producer != ""
        source = place[numbers[tensor.producer]] if made else names[tensor.home or problem.host]
        makers = stages[source] if made else [source]
        wanted = {place[numbers[reader]]: stages[place[numbers[reader]]] for reader in tensor.consumers}
        for primary in sorted(wanted):
            if primary == source and made:
                continue  # a sample stays with one replica of its stage
            yield from _turns(index, makers, wanted[primary])
        if tensor.output:
            served = next((members for members in wanted.values() if host in members), [-1])
            yield from _turns(index, makers, [host], served)


def _turns(
    tensor: int, makers: list[int], readers: list[int], served: Sequence[int] = (-1,)
) -> Iterator[tuple[int, int, int, int | Fraction]]:
    """Sample s goes from maker s mod m to reader s mod r, unless it came there as `served` s mod their number."""
    period = lcm(len(makers), len(readers), len(served))
    for sample in range(period):
        source, destination = makers[sample % len(makers)], readers[sample % len(readers)]
        if source != destination and served[sample % len(served)] != destination:
            yield source, destination, tensor, Fraction(1, period) if period > 1 else 1


def _hops(problem: Problem, source: int, destination: int, tensor: int) -> Iterator[tuple[int, int]]:
    arrays = problem.arrays
    links, types = int(arrays.sizes[4]), int(arrays.sizes[3])
    route = _route(problem, source, destination, f"tensor {problem.tensors[tensor].name!r}")
    for position, link in enumerate(route):
        duration = int(arrays.hop_ns[arrays.tensor_size_class[tensor] * links + link])
        if position == 0:
            duration += int(arrays.boundary_ns[tensor * types + arrays.device_type[source]])
        if position == len(route) - 1:
            duration += int(arrays.boundary_ns[tensor * types + arrays.device_type[destination]])
        yield link, duration


def _route(problem: Problem, source: int, destination: int, what: str) -> list[int]:
    arrays = problem.arrays
    number = source * arrays.devices + destination
    route: list[int] = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]].tolist()
    if not route:
        raise PlacementError(f"no route brings {what} to device {problem.cluster.devices[destination].name!r}")
    return route


def _occupy(
    problem: Problem,
    profile: PublishedModel,
    device: list[int | Fraction],
    port: list[int | Fraction],
    hop: tuple[int, int | Fraction],
) -> None:
    """A hop holds its link's port, and a slot of each end whose copies block."""
    link, duration = hop
    arrays = problem.arrays
    port[int(arrays.link_port[link])] += duration
    if profile.contention:
        for end in {int(arrays.link_source[link]), int(arrays.link_destination[link])}:
            if arrays.device_blocking[end]:
                device[end] += duration


def _messages(problem: Problem, placement: Placement, primary: int, replicas: int) -> Iterator[tuple[int, int, int]]:
    """The messages between the replicas of a stage about the weights that its update units name."""
    place = placement.device.tolist()
    updated = {
        name
        for unit, where in zip(problem.units, place, strict=True)
        if where == primary and unit.phase == "update"
        for name in unit.weights
    }
    method = SYNCHRONISATIONS.load(problem.synchronisation)
    for name in sorted(updated):
        for messages in method.rounds(replicas, problem.weights[name]):
            yield from messages
