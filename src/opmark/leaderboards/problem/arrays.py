"""A problem as int64 arrays in compressed rows, packed into one buffer for the compiled simulator."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opmark.core.errors import ContentError
from opmark.leaderboards.problem.colocation import class_names
from opmark.leaderboards.problem.integers import Integers, integers, rows
from opmark.leaderboards.problem.interference import interference_arrays, slowest_factor
from opmark.leaderboards.problem.packing import FIELDS
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.routes import hop_ns, routes
from opmark.leaderboards.problem.rules.profile import Profile

_LEAST = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, kw_only=True)
class ProblemArrays:
    """Shapes: U units, M tensors, D devices, T device types, L links, S distinct tensor sizes.

    `sizes` is (U, M, D, T, L, ports, host, 1 where memory is tracked by liveness, C classes of interference, and 1 each
    for multicast, first-ready-first-run, and outputs that stay on the host). `exec_ns` is U×T, -1 where a type cannot
    run the unit; `hop_ns` is S×L; `boundary_ns` is M×T; `interference` is T×C×C, in millionths; routes are rows of
    source·D + destination. Two-dimensional arrays lie flat. Request r, of units and tensors `request_units[r]` and
    `request_tensors[r]` to the next, arrives at `release_ns[r]`; `request_urgency` is that of a transfer for which only
    the host waits. A problem by itself is one request at time 0.
    """

    sizes: Integers
    exec_ns: Integers
    workspace_bytes: Integers
    input_offsets: Integers
    input_tensors: Integers
    output_offsets: Integers
    output_tensors: Integers
    tensor_bytes: Integers
    tensor_producer: Integers
    tensor_home: Integers
    tensor_output: Integers
    tensor_size_class: Integers
    consumer_offsets: Integers
    consumer_units: Integers
    boundary_ns: Integers
    device_type: Integers
    device_slots: Integers
    device_dispatch_ns: Integers
    device_blocking: Integers
    link_source: Integers
    link_destination: Integers
    link_port: Integers
    route_offsets: Integers
    route_links: Integers
    hop_ns: Integers
    # What only placers, bounds and checks read.
    device_memory_bytes: Integers
    weight_offsets: Integers
    weight_ids: Integers
    weight_bytes: Integers
    link_second_port: Integers
    unit_class: Integers
    interference: Integers
    release_ns: Integers
    request_units: Integers
    request_tensors: Integers
    request_urgency: Integers
    colocation: Integers
    topological: Integers

    @property
    def units(self) -> int:
        """How many units."""
        return int(self.sizes[0])

    @property
    def devices(self) -> int:
        """How many devices."""
        return int(self.sizes[2])

    @property
    def host(self) -> int:
        """The number of the host."""
        return int(self.sizes[6])

    @cached_property
    def packed(self) -> tuple[Integers, Integers]:
        """Every array of `FIELDS` end to end, and where each starts."""
        parts = [getattr(self, name) for name in FIELDS]
        starts = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
        return np.concatenate(parts), starts

    def under(self, profile: Profile) -> "ProblemArrays":
        """These arrays with the ports and switches of a profile."""
        if not (profile.half_duplex or profile.multicast or profile.fifo):
            return self
        sizes = self.sizes.copy()
        sizes[9], sizes[10] = profile.multicast, profile.fifo
        port, second = self.link_port, self.link_second_port
        if profile.half_duplex:
            port, second = self.link_source, self.link_destination
            sizes[5] = self.devices
        if profile.multicast:
            port = second = self.link_source
            sizes[5] = self.devices
        return replace(self, sizes=sizes, link_port=port, link_second_port=second)

    @cached_property
    def run_ns(self) -> Integers:
        """U×D: how long a unit holds a slot of each device, dispatch included; -1 where it cannot run."""
        table = self.exec_ns.reshape(self.units, -1)[:, self.device_type]
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


def compile_problem(problem: Problem) -> ProblemArrays:
    """The arrays of a problem. Raises `ContentError` for a wrong or cyclic one."""
    problem.checked(problem.name)
    cluster = problem.cluster
    device_number = {device.name: number for number, device in enumerate(cluster.devices)}
    types = sorted({device.type for device in cluster.devices})
    unit_number = {unit.name: number for number, unit in enumerate(problem.units)}
    weight_number = {name: number for number, name in enumerate(sorted(problem.weights))}
    inputs: list[list[int]] = [[] for _ in problem.units]
    outputs: list[list[int]] = [[] for _ in problem.units]
    consumers = []
    for number, tensor in enumerate(problem.tensors):
        readers = sorted(unit_number[name] for name in tensor.consumers)
        consumers.append(readers)
        for reader in readers:
            inputs[reader].append(number)
        if tensor.producer:
            outputs[unit_number[tensor.producer]].append(number)
    input_offsets, input_tensors = rows(inputs)
    output_offsets, output_tensors = rows(outputs)
    consumer_offsets, consumer_units = rows(consumers)
    weight_offsets, weight_ids = rows(
        [sorted({weight_number[name] for name in unit.weights}) for unit in problem.units]
    )
    tensor_bytes = integers(tensor.size_bytes for tensor in problem.tensors)
    classes, size_class = np.unique(tensor_bytes, return_inverse=True)
    hops = [[hop_ns(link, int(size)) for link in cluster.links] for size in classes]
    ports = _ports(problem)
    paths = routes(cluster)
    names = list(device_number)
    route_offsets, route_links = rows([paths.get((a, b), ()) for a in names for b in names])
    class_number: dict[str, int] = {}
    colocation = [class_number.setdefault(name, len(class_number)) if name else -1 for name in class_names(problem)]
    _check_magnitude(problem, hops)
    sizes = (len(problem.units), len(problem.tensors), len(names), len(types), len(cluster.links), len(set(ports)))
    count, unit_class, interference = interference_arrays(problem, types)
    arrays = ProblemArrays(
        sizes=integers([*sizes, device_number[problem.host], problem.memory_mode != "sum", count, 0, 0, 1]),
        exec_ns=integers(round(unit.exec_ns.get(name, -1)) for unit in problem.units for name in types),
        workspace_bytes=integers(unit.workspace_bytes for unit in problem.units),
        input_offsets=input_offsets,
        input_tensors=input_tensors,
        output_offsets=output_offsets,
        output_tensors=output_tensors,
        tensor_bytes=tensor_bytes,
        tensor_producer=integers(unit_number[t.producer] if t.producer else -1 for t in problem.tensors),
        tensor_home=integers(-1 if t.producer else device_number[t.home or problem.host] for t in problem.tensors),
        tensor_output=integers(tensor.output for tensor in problem.tensors),
        tensor_size_class=size_class.astype(np.int64),
        consumer_offsets=consumer_offsets,
        consumer_units=consumer_units,
        boundary_ns=integers(round(tensor.boundary_ns.get(name, 0)) for tensor in problem.tensors for name in types),
        device_type=integers(types.index(device.type) for device in cluster.devices),
        device_slots=integers(device.slots for device in cluster.devices),
        device_dispatch_ns=integers(device.dispatch_ns for device in cluster.devices),
        device_blocking=integers(device.blocking_copy for device in cluster.devices),
        link_source=integers(device_number[link.source] for link in cluster.links),
        link_destination=integers(device_number[link.destination] for link in cluster.links),
        link_port=integers(ports),
        route_offsets=route_offsets,
        route_links=route_links,
        hop_ns=integers(value for row in hops for value in row),
        device_memory_bytes=integers(device.memory_bytes for device in cluster.devices),
        weight_offsets=weight_offsets,
        weight_ids=weight_ids,
        weight_bytes=integers(problem.held_bytes[name] for name in weight_number),
        link_second_port=integers(ports),
        unit_class=unit_class,
        interference=interference,
        release_ns=integers([0]),
        request_units=integers([0, len(problem.units)]),
        request_tensors=integers([0, len(problem.tensors)]),
        request_urgency=integers([_LEAST]),
        colocation=integers(colocation),
        topological=np.empty(0, dtype=np.int64),
    )
    return with_topological_order(arrays)


def with_topological_order(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with `topological` filled in: among units that are free, the lowest number first."""
    from opmark.leaderboards.problem.sweeps import topological_order

    order = topological_order(*arrays.packed)
    if len(order) < arrays.units:
        raise ContentError("the graph has a cycle")
    return replace(arrays, topological=order)


def _ports(problem: Problem) -> list[int]:
    """A port number per link; a link that names none has one of its own."""
    number: dict[str, int] = {}
    found = []
    for index, link in enumerate(problem.cluster.links):
        found.append(number.setdefault(f"port {link.port}" if link.port else f"link {index}", len(number)))
    return found


def _check_magnitude(problem: Problem, hops: list[list[int]]) -> None:
    """Refuse a problem whose times or bytes could leave int64 when everything happens one after the other."""
    dispatch = max(device.dispatch_ns for device in problem.cluster.devices)
    total = sum(max(unit.exec_ns.values()) + dispatch for unit in problem.units)
    total *= 1 + slowest_factor(problem)
    passes = max(1, problem.micro_batches, sum(len(stream.arrival_ns) for stream in problem.arrivals))
    last = max((stream.arrival_ns[-1] for stream in problem.arrivals), default=0)
    each = max((value for row in hops for value in row), default=0) * max(1, len(problem.cluster.links))
    boundary = sum(2 * max(tensor.boundary_ns.values(), default=0) for tensor in problem.tensors)
    devices = len(problem.cluster.devices)
    size = sum(tensor.size_bytes for tensor in problem.tensors) * devices + sum(problem.held_bytes.values()) * devices
    size += sum(unit.workspace_bytes for unit in problem.units)
    whole = (total + (each * len(problem.tensors) + boundary) * devices) * passes + last
    if whole >= 2**62 or size * passes >= 2**62:
        raise ContentError("the times or sizes are too large to add up below 2^62", where=problem.name)
