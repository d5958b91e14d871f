"""Loads once more, sample by sample: slow, obvious, sharing no code with the library."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import ceil, lcm

from tests.leaderboards.reference import fewest_links, link_ns


def samples_of(problem, place, replicas):
    """One period of samples: per sample, the device that runs each unit."""
    stages = {name: [name, *replicas.get(name, ())] for name in {*place.values()}}
    period = lcm(*(len(row) for row in stages.values()))
    return [
        {unit: stages[where][sample % len(stages[where])] for unit, where in place.items()} for sample in range(period)
    ]


def throughput(problem, place, replicas=None, profile="opsim1", rounds=None):
    """ns per sample of the busiest device or port; `rounds` are what replicas of a stage exchange per weight."""
    replicas = replicas or {}
    devices = {d.name: d for d in problem.cluster.devices}
    routes = fewest_links(problem.cluster)
    busy, ports = defaultdict(Fraction), defaultdict(Fraction)

    def carry(link_number, duration):
        link = problem.cluster.links[link_number]
        ports[link.port or link_number] += duration
        for end in (link.source, link.destination):
            busy[end] += duration * devices[end].blocking_copy if profile != "contention_free" else 0

    samples = samples_of(problem, place, replicas)
    for running in samples:
        for unit in problem.units:
            exec_ns = round(unit.exec_ns[devices[running[unit.name]].type])
            busy[running[unit.name]] += exec_ns + devices[running[unit.name]].dispatch_ns if exec_ns else 0
        for tensor in problem.tensors:
            source = running[tensor.producer] if tensor.producer else tensor.home or problem.host
            wanted = {running[name] for name in tensor.consumers} | ({problem.host} if tensor.output else set())
            for to in wanted - {source}:
                route = routes[source, to]
                for position, number in enumerate(route):
                    duration = link_ns(problem.cluster.links[number], tensor.size_bytes)
                    if position == 0:
                        duration += round(tensor.boundary_ns.get(devices[source].type, 0))
                    if position == len(route) - 1:
                        duration += round(tensor.boundary_ns.get(devices[to].type, 0))
                    carry(number, duration)
    for primary, others in replicas.items():
        members = [primary, *others]
        updated = {w for u in problem.units if u.phase == "update" and place[u.name] == primary for w in u.weights}
        for weight in sorted(updated):
            for messages in rounds(len(members), problem.weights[weight]):
                for a, b, size in messages:
                    for number in routes[members[a], members[b]]:
                        # one exchange after every replica had its turn
                        carry(
                            number, Fraction(link_ns(problem.cluster.links[number], size) * len(samples), len(members))
                        )
    loads = [busy[name] / device.slots for name, device in devices.items()]
    if profile != "contention_free":
        loads += ports.values()
    return max(loads) / len(samples)


def max_load(problem, place):
    """dnn-partitioning's load: compute, plus every tensor taken in or sent out once, by way of the host."""
    devices = {d.name: d for d in problem.cluster.devices}
    routes = fewest_links(problem.cluster)

    def price(tensor, name, outwards):
        ends = (name, problem.host) if outwards else (problem.host, name)
        hops = sum(link_ns(problem.cluster.links[n], tensor.size_bytes) for n in routes.get(ends, []))
        return hops + round(tensor.boundary_ns.get(devices[name].type, 0))

    loads = dict.fromkeys(devices, 0)
    for unit in problem.units:
        exec_ns = round(unit.exec_ns[devices[place[unit.name]].type])
        loads[place[unit.name]] += exec_ns + devices[place[unit.name]].dispatch_ns if exec_ns else 0
    for tensor in problem.tensors:
        source = place[tensor.producer] if tensor.producer else tensor.home or problem.host
        wanted = {place[name] for name in tensor.consumers} | ({problem.host} if tensor.output else set())
        for to in wanted - {source}:
            loads[to] += price(tensor, to, outwards=False)
        if wanted - {source}:
            loads[source] += price(tensor, source, outwards=True)
    return max(loads.values())


def is_contiguous(problem, place):
    """No path over forward units leaves a device and returns, by trying every path."""
    forward = {unit.name for unit in problem.units if unit.phase == "forward"}
    after = defaultdict(set)
    for tensor in problem.tensors:
        if tensor.producer in forward:
            after[tensor.producer] |= {name for name in tensor.consumers if name in forward}

    def returns(unit, home, left):
        return any(
            (left and place[reader] == home) or returns(reader, home, left or place[reader] != home)
            for reader in after[unit]
        )

    return not any(returns(unit, place[unit], False) for unit in forward)


def best_pipeline(times, weights, machines, bytes_per_s):
    """PipeDream on a chain, all ways to cut it and to hand out machines tried; ns per sample."""
    best = None
    count = len(times)
    for cuts in range(2 ** (count - 1)):
        stages, start = [], 0
        for position in range(count):
            if position == count - 1 or cuts >> position & 1:
                stages.append((sum(times[start : position + 1]), sum(weights[start : position + 1])))
                start = position + 1
        if len(stages) > machines:
            continue
        shares = [row for row in product(range(1, machines + 1), repeat=len(stages)) if sum(row) <= machines]
        for row in shares:
            cost = max(
                (compute + Fraction(4 * (m - 1) * size * 10**9, m) / Fraction(bytes_per_s)) / m
                for (compute, size), m in zip(stages, row, strict=True)
            )
            best = cost if best is None else min(best, cost)
    return best


def stashed(problem, place, replicas=None):
    """Peak bytes per device when every sample in flight keeps its forward tensors."""
    replicas = replicas or {}
    phase = {unit.name: unit.phase for unit in problem.units}
    used = {*place.values()}
    next_to = defaultdict(set)
    for tensor in problem.tensors:
        for name in tensor.consumers:
            if tensor.producer and phase[tensor.producer] == phase[name] == "forward":
                next_to[place[tensor.producer]].add(place[name])
    found = {}
    for where in (d.name for d in problem.cluster.devices):
        behind, edge = {where}, {where}
        while edge:
            edge = {other for name in edge for other in next_to[name]} - behind
            behind |= edge
        workers = sum(1 + len(replicas.get(name, ())) for name in behind & used)
        flying = max(1, ceil(Fraction(workers, 1 + len(replicas.get(where, ())))))
        if problem.micro_batches:
            flying = min(flying, problem.micro_batches)
        units = [unit for unit in problem.units if place[unit.name] == where]
        total = sum(problem.held_bytes[w] for w in {w for unit in units for w in unit.weights})
        total += max((unit.workspace_bytes for unit in units), default=0)
        for tensor in problem.tensors:
            source = place[tensor.producer] if tensor.producer else tensor.home or problem.host
            holders = (
                {source} | {place[name] for name in tensor.consumers} | ({problem.host} if tensor.output else set())
            )
            if where in holders:
                kept = not tensor.producer or phase[tensor.producer] == "forward"
                total += tensor.size_bytes * (flying if kept else 1)
        found[where] = total
    return found
