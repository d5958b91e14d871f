"""A problem as int64 arrays in compressed rows, packed into one buffer for the compiled simulator."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from opmark.core.errors import ContentError
from opmark.leaderboards.problem.columns.graph_columns import columns_of
from opmark.leaderboards.problem.fields import ProblemFields
from opmark.leaderboards.problem.graph import NumberedGraph, numbered
from opmark.leaderboards.problem.graph_checks import graph_findings, refuse
from opmark.leaderboards.problem.integers import Integers, integers, rows
from opmark.leaderboards.problem.interference import interference_arrays, slowest_factor
from opmark.leaderboards.problem.packing import FIELDS, PackedFields, Sizes
from opmark.leaderboards.problem.routes import hop_table, routes

_LEAST = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRules:
    """Switches of the event simulation.

    `contention` makes a link serve one transfer at a time; without it ports are infinite and copies never block.
    `half_duplex` gives every device one port that sends or receives. `multicast` sends a tensor once, to all its
    readers, over one bus per source. `fifo` starts ready units in the order in which they became ready.
    """

    contention: bool = True
    half_duplex: bool = False
    multicast: bool = False
    fifo: bool = False


@dataclass(frozen=True, kw_only=True)
class ProblemArrays(PackedFields):
    """The packed arrays, the sizes before them, and arrays that only placers, bounds and checks read.

    `colocation` numbers the class of each unit (-1: none).
    """

    sizes: Sizes
    device_memory_bytes: Integers
    colocation: Integers
    topological: Integers

    @property
    def units(self) -> int:
        """The number of units."""
        return self.sizes.units

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.sizes.devices

    @property
    def host(self) -> int:
        """The host, by number."""
        return self.sizes.host

    @cached_property
    def packed(self) -> tuple[Integers, Integers]:
        """Every array of `FIELDS` end to end, and the start of each."""
        parts = [getattr(self, name) for name in FIELDS]
        starts = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
        return np.concatenate([np.array(self.sizes, dtype=np.int64), *parts[1:]]), starts

    def under(self, rules: EventRules) -> "ProblemArrays":
        """These arrays with the ports and switches of `rules`."""
        if not (rules.half_duplex or rules.multicast or rules.fifo):
            return self
        port, second, ports = self.link_port, self.link_second_port, self.sizes.ports
        if rules.half_duplex:
            port, second, ports = self.link_source, self.link_destination, self.devices
        if rules.multicast:
            port, second, ports = self.link_source, self.link_source, self.devices
        sizes = self.sizes._replace(ports=ports, multicast=int(rules.multicast), fifo=int(rules.fifo))
        return replace(self, sizes=sizes, link_port=port, link_second_port=second)

    @cached_property
    def run_ns(self) -> Integers:
        """U×D: the time for which a unit holds a slot of each device, dispatch included; -1 if it cannot run there."""
        # `take` keeps rows together. Another layout would have all compiled code that reads it compiled once more.
        table = self.exec_ns.reshape(self.units, -1).take(self.device_type, axis=1)
        return np.where(table > 0, table + self.device_dispatch_ns, table)

    @cached_property
    def default_priority(self) -> Integers:
        """Upward rank: the longest way to the end with every unit on its fastest device and free transfers."""
        from opmark.leaderboards.problem.sweeps import upward_rank

        table = self.run_ns
        fastest = np.where(table < 0, np.iinfo(np.int64).max, table).min(axis=1)
        free = np.zeros(len(self.tensor_bytes), dtype=np.int64)
        rank: Integers = upward_rank(*self.packed, self.topological, fastest, free)
        return rank


def compile_problem(problem: ProblemFields) -> ProblemArrays:
    """The arrays of a problem. Raises `ContentError` for a wrong or cyclic graph, and for numbers beyond 64 bits."""
    refuse(graph_findings(problem), problem.name)
    types = problem.cluster.types
    numbers = {device.name: number for number, device in enumerate(problem.cluster.devices)}
    count, unit_class, interference = interference_arrays(problem, types)
    graph, columns = numbered(problem), columns_of(problem)
    cluster = _cluster_arrays(problem, types, numbers)
    sizes, size_class = np.unique(columns.tensor_bytes, return_inverse=True)
    hops = hop_table(problem.cluster.links, sizes)
    arrays = ProblemArrays(
        sizes=Sizes(
            units=graph.units,
            tensors=graph.tensors,
            devices=len(numbers),
            types=len(types),
            links=len(problem.cluster.links),
            ports=int(cluster["link_port"].max(initial=-1)) + 1,
            host=numbers[problem.host],
            liveness=int(problem.memory_mode != "sum"),
            classes=count,
            multicast=0,
            fifo=0,
            outputs_stay=1,
        ),
        **_graph_arrays(graph),
        **{item.name: getattr(columns, item.name) for item in fields(columns)},
        **cluster,
        weight_bytes=integers(problem.held_bytes.values()),
        tensor_size_class=size_class.astype(np.int64),
        hop_ns=hops.reshape(-1),
        unit_class=unit_class,
        interference=interference,
        release_ns=integers([0]),
        request_units=integers([0, graph.units]),
        request_tensors=integers([0, graph.tensors]),
        request_urgency=integers([_LEAST]),
        topological=np.empty(0, dtype=np.int64),
    )
    _check_magnitude(problem, arrays)
    return with_topological_order(arrays)


def with_topological_order(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with `topological` filled in: among units that are free, the lowest number first."""
    from opmark.leaderboards.problem.sweeps import topological_order

    order = topological_order(*arrays.packed)
    if len(order) < arrays.units:
        raise ContentError("the graph has a cycle")
    found = replace(arrays, topological=order)
    found.__dict__["packed"] = arrays.packed  # which the order is no part of
    return found


def _graph_arrays(graph: NumberedGraph) -> dict[str, Integers]:
    by_reader = np.argsort(graph.consumer_units, kind="stable")
    made = np.flatnonzero(graph.producer >= 0)
    by_producer = made[np.argsort(graph.producer[made], kind="stable")]
    return {
        "input_offsets": _offsets(np.bincount(graph.consumer_units, minlength=graph.units)),
        "input_tensors": graph.tensor_of_consumer[by_reader],
        "output_offsets": _offsets(np.bincount(graph.producer[made], minlength=graph.units)),
        "output_tensors": by_producer,
        "tensor_producer": graph.producer,
        "consumer_offsets": graph.consumer_offsets,
        "consumer_units": graph.consumer_units,
        "weight_offsets": graph.weight_offsets,
        "weight_ids": graph.weight_ids,
    }


def _cluster_arrays(problem: ProblemFields, types: tuple[str, ...], numbers: Mapping[str, int]) -> dict[str, Integers]:
    devices, links = problem.cluster.devices, problem.cluster.links
    paths = routes(problem.cluster)
    route_offsets, route_links = rows([paths.get((a, b), ()) for a in numbers for b in numbers])
    # Links that name one port share it; a link that names none has its own.
    port: dict[str, int] = {}
    keys = [f"port {link.port}" if link.port else f"link {number}" for number, link in enumerate(links)]
    ports = integers(port.setdefault(key, len(port)) for key in keys)
    return {
        "device_type": integers(types.index(device.type) for device in devices),
        "device_slots": integers(device.slots for device in devices),
        "device_dispatch_ns": integers(device.dispatch_ns for device in devices),
        "device_blocking": integers(device.blocking_copy for device in devices),
        "device_copying": integers(device.own_copies for device in devices),
        "device_memory_bytes": integers(device.memory_bytes for device in devices),
        "link_source": integers(numbers[link.source] for link in links),
        "link_destination": integers(numbers[link.destination] for link in links),
        "link_port": ports,
        "link_second_port": ports,
        "route_offsets": route_offsets,
        "route_links": route_links,
    }


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _check_magnitude(problem: ProblemFields, arrays: ProblemArrays) -> None:
    """Refuse a problem whose times or bytes could leave int64 when everything happens one after the other."""
    sizes = arrays.sizes
    slowest = _sum(arrays.exec_ns.reshape(sizes.units, sizes.types).max(axis=1))
    total = (slowest + sizes.units * int(arrays.device_dispatch_ns.max())) * (1 + slowest_factor(problem))
    passes = max(1, problem.micro_batches, sum(len(stream.arrival_ns) for stream in problem.arrivals))
    last = max((stream.arrival_ns[-1] for stream in problem.arrivals), default=0)
    each = int(arrays.hop_ns.max(initial=0)) * max(1, sizes.links)
    boundary = 2 * _sum(arrays.boundary_ns.reshape(sizes.tensors, sizes.types).max(axis=1, initial=0))
    size = (_sum(arrays.tensor_bytes) + _sum(arrays.weight_bytes)) * sizes.devices + _sum(arrays.workspace_bytes)
    whole = (total + (each * sizes.tensors + boundary) * sizes.devices) * passes + last
    if whole >= 2**62 or size * passes >= 2**62:
        raise ContentError("the times or sizes are too large to add up below 2^62", where=problem.name)


def _sum(values: Integers) -> int:
    """An exact sum, which 64 bits may not hold: halves of 32 bits cannot overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
