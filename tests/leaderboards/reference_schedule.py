"""Plain Python list scheduling, unit by unit: slow, obvious, what the compiled one is held against."""

import bisect
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups, groups_of


class PlainListSchedule:
    """Starts empty; `options` says where and when a unit could run, `put` commits it.

    Units must be put in an order that respects precedence. With `contention`, a link is busy while it carries a
    tensor and later tensors queue behind (no insertion on links); without it every tensor travels at once.
    """

    def __init__(self, problem: Problem, *, contention: bool = True) -> None:
        arrays = problem.arrays
        self.problem = problem
        self.groups: Groups = groups_of(problem)
        self.contention = contention
        self.device = [-1] * arrays.units
        self.start_ns = [0] * arrays.units
        self.end_ns = [0] * arrays.units
        self._run = arrays.run_ns.tolist()
        self._allowed = self.groups.allowed.tolist()
        self._group = self.groups.of_unit.tolist()
        self._decided = [-1] * self.groups.count
        self._held = [0] * arrays.devices
        self._memory = arrays.device_memory_bytes.tolist()
        self._sizes = self.groups.size_bytes.tolist()
        self._inputs = _rows(arrays.input_offsets, arrays.input_tensors)
        self._outputs = _rows(arrays.output_offsets, arrays.output_tensors)
        self._producer = arrays.tensor_producer.tolist()
        self._home = arrays.tensor_home.tolist()
        self._returns = arrays.tensor_output.tolist()
        self._routes = _rows(arrays.route_offsets, arrays.route_links)
        self._hops = arrays.hop_ns.reshape(-1, max(1, len(arrays.link_port))).tolist()
        self._size_class = arrays.tensor_size_class.tolist()
        self._boundary = arrays.boundary_ns.reshape(len(self._producer), arrays.sizes[3])[
            :, arrays.device_type
        ].tolist()
        self._port = arrays.link_port.tolist()
        self._port_free = [0] * (max(self._port, default=-1) + 1)
        self._there: dict[tuple[int, int], int] = {}
        # One line of busy intervals per slot: (start, end, how many were put before), ascending.
        self._put: list[int] = []
        self._lines: list[list[list[tuple[int, int, int]]]] = [
            [[] for _ in range(slots)] for slots in arrays.device_slots.tolist()
        ]

    def allowed(self, unit: int) -> list[int]:
        """The devices the unit's class may use: where its class already is, else those that have room for it."""
        group = self._group[unit]
        if self._decided[group] >= 0:
            return [self._decided[group]]
        able = [number for number, can in enumerate(self._allowed[group]) if can]
        roomy = [number for number in able if self._held[number] + self._sizes[group] <= self._memory[number]]
        return roomy or able

    def options(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """(device, start, end) for every allowed device, in ns."""
        for device in self.allowed(unit):
            ready, _ = self._arrivals(unit, device)
            start, _ = self._gap(device, ready, self._run[unit][device])
            yield device, start, start + self._run[unit][device]

    def return_ns(self, unit: int, device: int) -> int:
        """How long the unit's graph outputs need from `device` to the host, on empty links."""
        host = self.problem.arrays.host
        wanted = [tensor for tensor in self._outputs[unit] if self._returns[tensor]]
        return 0 if device == host else max((self.travel_ns(tensor, device, host) for tensor in wanted), default=0)

    def put(self, unit: int, device: int) -> None:
        """Run `unit` on `device` as early as possible, and send it what it needs."""
        group = self._group[unit]
        if self._decided[group] < 0:
            self._decided[group] = device
            self._held[device] += self._sizes[group]
        ready, ports = self._arrivals(unit, device, record=True)
        for port, free in ports.items():
            self._port_free[port] = free
        start, line = self._gap(device, ready, self._run[unit][device])
        bisect.insort(self._lines[device][line], (start, start + self._run[unit][device], len(self._put)))
        self._put.append(unit)
        self.device[unit], self.start_ns[unit] = device, start
        self.end_ns[unit] = start + self._run[unit][device]

    def travel_ns(self, tensor: int, source: int, destination: int) -> int:
        """How long a tensor takes between two devices on empty links; a very long time without a route."""
        if source == destination:
            return 0
        links = self._routes[source * len(self._memory) + destination]
        boundary = self._boundary[tensor][source] + self._boundary[tensor][destination]
        return sum(self._hops[self._size_class[tensor]][link] for link in links) + boundary if links else 2**50

    def placement(self, priority: Integers | None = None) -> Placement:
        """What was built, as a placement in which every device keeps its order."""
        order = {}
        for number, lines in enumerate(self._lines):
            order[number] = [self._put[item] for _, _, item in sorted(item for line in lines for item in line)]
        return Placement(device=np.array(self.device, dtype=np.int64), priority=priority, order=order)

    def _arrivals(self, unit: int, device: int, *, record: bool = False) -> tuple[int, dict[int, int]]:
        """When the last input would be on `device`, and until when the ports would be busy with them."""
        last = 0
        ports: dict[int, int] = {}
        found = []
        for tensor in self._inputs[unit]:
            producer = self._producer[tensor]
            source = self._home[tensor] if producer < 0 else self.device[producer]
            found.append((0 if producer < 0 else self.end_ns[producer], tensor, source))
        for made, tensor, source in sorted(found):
            if source == device:
                last = max(last, made)
                continue
            known = self._there.get((tensor, device))
            arrival = self._travel(tensor, source, device, made, ports) if known is None else known
            if record:
                self._there[tensor, device] = arrival
            last = max(last, arrival)
        return last, ports

    def _travel(self, tensor: int, source: int, device: int, made: int, ports: dict[int, int]) -> int:
        if not self.contention:
            return made + self.travel_ns(tensor, source, device)
        links = self._routes[source * len(self._memory) + device]
        if not links:
            return 2**50
        time = made
        for position, link in enumerate(links):
            port = self._port[link]
            duration = self._hops[self._size_class[tensor]][link]
            duration += self._boundary[tensor][source] if position == 0 else 0
            duration += self._boundary[tensor][device] if position == len(links) - 1 else 0
            time = max(time, ports.get(port, self._port_free[port])) + duration
            ports[port] = time
        return time

    def _gap(self, device: int, ready: int, duration: int) -> tuple[int, int]:
        """The earliest start not before `ready` in an idle gap long enough, and the slot that has it."""
        best = (2**62, 0)
        for number, line in enumerate(self._lines[device]):
            start = ready
            first = max(0, bisect.bisect_right(line, (ready, 2**62, 0)) - 1)
            for busy_from, busy_to, _ in line[first:]:
                if start + duration <= busy_from:
                    break
                start = max(start, busy_to)
            best = min(best, (start, number))
        return best


def mean_travel_ns(schedule: PlainListSchedule) -> Integers:
    """Per tensor, its mean travel time over all ordered pairs of devices with a route, in ns."""
    arrays = schedule.problem.arrays
    numbers = range(arrays.devices)
    joined = np.diff(arrays.route_offsets) > 0
    pairs = [(a, b) for a in numbers for b in numbers if joined[a * arrays.devices + b]]
    tensors = range(len(arrays.tensor_bytes))
    totals = [sum(schedule.travel_ns(tensor, a, b) for a, b in pairs) for tensor in tensors]
    return np.array([round(total / max(1, len(pairs))) for total in totals], dtype=np.int64)


def _rows(offsets: Integers, values: Integers) -> list[list[int]]:
    flat = values.tolist()
    starts = offsets.tolist()
    return [flat[a:b] for a, b in pairwise(starts)]


def reference_heft(problem: Problem, *, contention: bool = True) -> PlainListSchedule:
    """HEFT in plain Python: units by falling mean upward rank, each where it ends first."""
    arrays = problem.arrays
    schedule = PlainListSchedule(problem, contention=contention)
    travel = mean_travel_ns(schedule).tolist()
    mean = [round(sum(able) / len(able)) for able in ([ns for ns in row if ns >= 0] for row in arrays.run_ns.tolist())]
    outputs, readers = (
        _rows(arrays.output_offsets, arrays.output_tensors),
        _rows(arrays.consumer_offsets, arrays.consumer_units),
    )
    rank = [0] * arrays.units
    topological = arrays.topological.tolist()
    for unit in reversed(topological):
        ahead = [travel[tensor] + rank[reader] for tensor in outputs[unit] for reader in readers[tensor]]
        rank[unit] = mean[unit] + max(ahead, default=0)
    position = {unit: number for number, unit in enumerate(topological)}
    for unit in sorted(range(arrays.units), key=lambda number: (-rank[number], position[number])):
        _, device = min((end + schedule.return_ns(unit, device), device) for device, _, end in schedule.options(unit))
        schedule.put(unit, device)
    return schedule
