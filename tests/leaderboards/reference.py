"""opsim 1 once more: slow, obvious, on plain Python objects; it shares no code with the compiled simulator."""

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from math import ceil


class Stuck(Exception):
    """Something never becomes ready."""


def fewest_links(cluster):
    """(source, destination) -> list of link numbers: the named route, or the first path of fewest links."""
    found = {}
    for start in cluster.devices:
        paths = [(start.name, [])]
        reached = {start.name}
        while paths:
            here, path = paths.pop(0)
            if path:
                found[start.name, here] = path
            for number, link in enumerate(cluster.links):
                if link.source == here and link.destination not in reached:
                    reached.add(link.destination)
                    paths.append((link.destination, [*path, number]))
    for route in cluster.routes:
        hops = pairwise(route)
        found[route[0], route[-1]] = [
            next(n for n, link in enumerate(cluster.links) if (link.source, link.destination) == hop) for hop in hops
        ]
    return found


def link_ns(link, size):
    """Duration of one hop, exactly."""
    rate = Fraction(10**9) / Fraction(link.bandwidth_bytes_per_s)
    if not link.points:
        return link.latency_ns + ceil(size * rate)
    points = list(link.points)
    if points[0][0] > 0:
        points.insert(0, (0, link.latency_ns))
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= size <= x1:
            return ceil(y0 + Fraction((y1 - y0) * (size - x0), x1 - x0))
    return points[-1][1] + ceil((size - points[-1][0]) * rate)


def upward_ranks(problem):
    """Longest way to the end, every unit on its fastest device, transfers free."""
    fastest = {}
    for unit in problem.units:
        times = []
        for device in problem.cluster.devices:
            if device.type in unit.exec_ns:
                exec_ns = round(unit.exec_ns[device.type])
                times.append(exec_ns + device.dispatch_ns if exec_ns else 0)
        fastest[unit.name] = min(times)
    after = defaultdict(set)
    waiting = {unit.name: 0 for unit in problem.units}
    for tensor in problem.tensors:
        for name in tensor.consumers:
            if tensor.producer and name not in after[tensor.producer]:
                after[tensor.producer].add(name)
                waiting[name] += 1
    order, free = [], [name for name, count in waiting.items() if count == 0]
    while free:
        name = free.pop()
        order.append(name)
        for reader in after[name]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                free.append(reader)
    rank = {}
    for name in reversed(order):
        rank[name] = fastest[name] + max((rank[reader] for reader in after[name]), default=0)
    return rank


class Reference:
    """Simulates one placement on construction; `cost`, `start`, `end`, `arrival` and `peak` are the result.

    `release` is when units without inputs (by name) and inputs (by number) are there, 0 for all others; `lowest` is how
    urgent a tensor (by number) is that nobody but the host wants. With `leave` the host hands outputs on at once.
    """

    def __init__(
        self, problem, device, priority=None, order=None, profile="opsim1", *, release=None, lowest=None, leave=False
    ):
        self.problem, self.place = problem, device
        self.release, self.lowest, self.leave = release or {}, lowest or {}, leave
        self.contention = profile != "contention_free"
        self.half_duplex = profile == "half_duplex_port"
        self.multicast = profile == "source_bus_multicast"
        self.devices = {d.name: d for d in problem.cluster.devices}
        self.names = list(self.devices)
        self.links = problem.cluster.links
        self.units = {unit.name: unit for unit in problem.units}
        self.number = {unit.name: i for i, unit in enumerate(problem.units)}
        self.rank = priority or upward_ranks(problem)
        self.order = {name: list(row) for name, row in (order or {}).items() if row}
        self.reads, self.makes = defaultdict(list), defaultdict(list)
        for m, tensor in enumerate(problem.tensors):
            for name in tensor.consumers:
                self.reads[name].append(m)
            self.makes[tensor.producer].append(m)
        self.source = [device[t.producer] if t.producer else t.home or problem.host for t in problem.tensors]
        self.routes = fewest_links(problem.cluster)
        self.plan_transfers()
        self.run()

    def plan_transfers(self):
        self.queue_of = {}
        self.destinations = []
        for m, tensor in enumerate(self.problem.tensors):
            wanted = {self.place[name] for name in tensor.consumers} | ({self.problem.host} if tensor.output else set())
            away = sorted(wanted - {self.source[m]}, key=self.names.index)
            self.destinations.append(away)
            for name in away:
                readers = [self.rank[c] for c in tensor.consumers if self.place[c] == name]
                self.queue_of[m, name] = max(readers, default=self.lowest.get(m, -(2**63)))

    def run(self):
        self.time = 0
        self.start, self.end, self.arrival = {}, {}, {}
        self.hops = {}
        self.present = set()
        self.expected = [name for name in self.units if not self.reads[name]]
        self.expected += [m for m, tensor in enumerate(self.problem.tensors) if not tensor.producer]
        self.waiting = defaultdict(list)
        self.ready = defaultdict(list)
        self.missing = {name: len(self.reads[name]) or 1 for name in self.units}
        self.running, self.moving = {}, {}
        self.factor, self.since = {}, {}
        self.free = {name: d.slots for name, d in self.devices.items()}
        self.busy_ports = set()
        while True:
            changed = True
            while changed:
                changed = self.finish_kernels() | self.finish_hops() | self.arrive()
                changed |= self.start_hops() | self.start_kernels()
                changed = bool(changed) and any(t == self.time for t in self.next_times())
            self.slow_down()
            if not self.next_times():
                break
            self.time = min(self.next_times())
        if len(self.end) < len(self.units):
            raise Stuck
        self.cost = self.time
        self.peak = self.peaks()

    def next_times(self):
        coming = [self.release.get(key, 0) for key in self.expected]
        return [*self.running.values(), *(end for end, _ in self.moving.values()), *coming]

    def arrive(self):
        """What was expected at this time: units without inputs are ready, inputs appear at home."""
        came = [key for key in self.expected if self.release.get(key, 0) == self.time]
        self.expected = (
            [key for key in self.expected if self.release.get(key, 0) != self.time] if came else self.expected
        )
        for key in came:
            if key in self.units:
                self.missing[key] = 0
                self.since[key] = self.time
                self.ready[self.place[key]].append(key)
            else:
                self.appear(key, self.source[key])
                self.send(key)
        return bool(came)

    def slow_down(self):
        """Units side by side on a device slow one another; what takes no time disturbs nobody."""
        for where, device in self.devices.items():
            beside = [n for n in self.running if self.place[n] == where and self.end[n] > self.start[n]]
            for name in beside:
                factor = Fraction(1)
                for other in beside:
                    if other != name:
                        factor += self.slowdown(device.type, self.units[name].kind, self.units[other].kind) - 1
                left = self.running[name] - self.time
                self.running[name] = self.time + ceil(left * factor / self.factor.get(name, Fraction(1)))
                self.end[name] = self.running[name]
                self.factor[name] = factor

    def slowdown(self, type_name, kind, other):
        table = self.problem.interference.get(type_name, {})
        for own, beside in ((kind, other), (kind, "*"), ("*", other), ("*", "*")):
            if beside in table.get(own, {}):
                return Fraction(round(table[own][beside] * 10**6), 10**6)
        return Fraction(1)

    def appear(self, m, where):
        self.present.add((m, where))
        for name in self.problem.tensors[m].consumers:
            if self.place[name] == where:
                self.missing[name] -= 1
                if not self.missing[name]:
                    self.since[name] = self.time
                    self.ready[where].append(name)

    def send(self, m):
        if self.multicast:
            if self.destinations[m]:
                leaving = [n for n, link in enumerate(self.links) if link.source == self.source[m]]
                self.since[m] = self.time
                self.waiting[leaving[0]].append((m, self.destinations[m][0], 0))
            return
        for destination in self.destinations[m]:
            first = self.routes[self.source[m], destination][0]
            self.waiting[first].append((m, destination, 0))

    def finish_kernels(self):
        ended = sorted((n for n, end in self.running.items() if end == self.time), key=self.number.get)
        for name in ended:
            del self.running[name]
            self.free[self.place[name]] += 1
            for m in self.makes[name]:
                self.appear(m, self.place[name])
                self.send(m)
        return bool(ended)

    def finish_hops(self):
        ended = sorted(key for key, (end, _) in self.moving.items() if end == self.time)
        for m, destination, hop in ended:
            _, link = self.moving.pop((m, destination, hop))
            if self.contention:
                self.busy_ports -= self.ports(link)
                for end in self.held(link):
                    self.free[end] += 1
            if self.multicast:
                for reached in self.destinations[m]:
                    self.arrival[m, reached] = self.time
                    self.appear(m, reached)
                continue
            route = self.routes[self.source[m], destination]
            if hop + 1 < len(route):
                self.waiting[route[hop + 1]].append((m, destination, hop + 1))
            else:
                self.arrival[m, destination] = self.time
                self.appear(m, destination)
        return bool(ended)

    def ports(self, link):
        """Everything that a transfer on a link occupies."""
        if self.half_duplex:
            return {self.links[link].source, self.links[link].destination}
        if self.multicast:
            return {self.links[link].source}
        return {self.links[link].port or link}

    def held(self, link):
        """The devices that a transfer holds: blocking ends, and where it arrives if that copies by itself.

        A bus holds its source alone.
        """
        source, destination = (self.devices[end] for end in (self.links[link].source, self.links[link].destination))
        found = [source.name] if source.blocking_copy else []
        if not self.multicast and (destination.blocking_copy or destination.own_copies):
            found.append(destination.name)
        return found

    def leaving_ns(self, name):
        """What a unit pays for the tensors that leave its device, where that copies by itself."""
        device = self.devices[self.place[name]]
        if self.multicast or not device.own_copies:
            return 0
        left = [self.problem.tensors[m] for m in self.makes[name] if self.destinations[m]]
        return sum(round(tensor.boundary_ns.get(device.type, 0)) for tensor in left)

    def travel_ns(self, m, destination):
        """The whole way of a tensor, both layout costs included."""
        tensor, source = self.problem.tensors[m], self.source[m]
        total = sum(link_ns(self.links[n], tensor.size_bytes) for n in self.routes[source, destination])
        for end in (source, destination):
            total += round(tensor.boundary_ns.get(self.devices[end].type, 0))
        return total

    def start_hops(self):
        began = False
        for number, link in enumerate(self.links):
            while self.waiting[number]:
                ends = self.held(number)
                if self.contention:
                    if self.ports(number) & self.busy_ports or any(self.free[end] == 0 for end in ends):
                        break
                    self.busy_ports |= self.ports(number)
                    for end in ends:
                        self.free[end] -= 1
                best = min(self.waiting[number], key=self.turn)
                self.waiting[number].remove(best)
                m, destination, hop = best
                tensor = self.problem.tensors[m]
                duration = link_ns(link, tensor.size_bytes)
                if self.multicast:
                    duration = max(self.travel_ns(m, reached) for reached in self.destinations[m])
                elif hop == 0 and not (tensor.producer and self.devices[self.source[m]].own_copies):
                    duration += round(tensor.boundary_ns.get(self.devices[self.source[m]].type, 0))
                if not self.multicast and hop + 1 == len(self.routes[self.source[m], destination]):
                    duration += round(tensor.boundary_ns.get(self.devices[destination].type, 0))
                self.moving[best] = (self.time + duration, number)
                self.hops[best] = (self.time, self.time + duration)
                began = True
        return began

    def turn(self, waiting):
        """Who goes first on a link."""
        m, destination, _ = waiting
        first = self.since[m] if self.multicast else -self.queue_of[m, destination]
        return first, m, self.names.index(destination)

    def start_kernels(self):
        began = False
        for where, device in self.devices.items():
            while self.free[where] > 0:
                if where in self.order:
                    if not self.order[where] or self.missing[self.order[where][0]]:
                        break
                    name = self.order[where].pop(0)
                elif self.ready[where]:
                    first = self.since.get if self.multicast else lambda n: -self.rank[n]
                    name = min(self.ready[where], key=lambda n: (first(n), self.number[n]))
                    self.ready[where].remove(name)
                else:
                    break
                exec_ns = round(self.units[name].exec_ns[device.type])
                self.free[where] -= 1
                self.start[name] = self.time
                self.end[name] = self.time + (exec_ns + device.dispatch_ns if exec_ns else 0) + self.leaving_ns(name)
                self.running[name] = self.end[name]
                began = True
        return began

    def peaks(self):
        """Peak bytes per device from the finished schedule: every buffer is an interval, closed left, open right."""
        lives = defaultdict(list)
        for m, tensor in enumerate(self.problem.tensors):
            born = self.start[tensor.producer] if tensor.producer else self.release.get(m, 0)
            copies = [(self.source[m], born, self.destinations[m])]
            lead = self.destinations[m][:1]
            copies += [
                (where, self.hops[m, lead[0] if self.multicast else where, 0][0], []) for where in self.destinations[m]
            ]
            for where, born, outgoing in copies:
                uses = [self.end[name] for name in tensor.consumers if self.place[name] == where]
                uses += [self.arrival[m, away] for away in outgoing]
                if where == self.source[m] and tensor.producer:
                    uses.append(self.end[tensor.producer])
                if where != self.source[m]:
                    uses.append(self.arrival[m, where])
                kept = tensor.output and where == self.problem.host and not self.leave
                died = self.cost + 1 if kept else max(uses, default=born)
                lives[where].append((born, died, tensor.size_bytes))
        for name, unit in self.units.items():
            lives[self.place[name]].append((self.start[name], self.end[name], unit.workspace_bytes))
        found = {}
        for where in self.devices:
            weights = {w for name, unit in self.units.items() if self.place[name] == where for w in unit.weights}
            updated = {w for unit in self.units.values() if unit.phase == "update" for w in unit.weights}
            state = self.problem.optimizer_state
            fixed = sum(self.problem.weights[w] for w in weights)
            fixed += sum(ceil(state * self.problem.weights[w]) for w in weights & updated)
            if self.problem.memory_mode == "sum":
                made = sum(t.size_bytes for m, t in enumerate(self.problem.tensors) if self.source[m] == where)
                work = sum(unit.workspace_bytes for name, unit in self.units.items() if self.place[name] == where)
                found[where] = fixed + made + work
                continue
            moments = [(born, size) for born, died, size in lives[where] if died > born]
            moments += [(died, -size) for born, died, size in lives[where] if died > born]
            now, peak = 0, 0
            for _, size in sorted(moments):
                now += size
                peak = max(peak, now)
            found[where] = fixed + peak
        return found
