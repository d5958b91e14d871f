"""Check a trace against its problem without simulating: is what it shows possible, and what does it cost?"""

from collections.abc import Iterable, Mapping
from typing import Any

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.profile import profile_named
from opmark.leaderboards.routes import hop_ns, routes
from opmark.leaderboards.trace import DEVICES, LINKS

Span = tuple[int, int]


def check_trace(problem: Problem, trace: Mapping[str, Any]) -> int:
    """The cost in ns that the events of `trace` add up to. Raises `PlacementError` naming what cannot be.

    Durations, slots, exclusive ports, routes, and that nothing starts before its inputs are there.
    """
    facts = trace.get("otherData", {})
    if facts.get("problem_id") != problem.id:
        raise PlacementError(f"the trace is of problem {facts.get('problem')!r}, not of this {problem.name!r}")
    contention = profile_named(str(facts.get("profile"))).contention
    spans = [event for event in trace.get("traceEvents", ()) if event.get("ph") == "X"]
    kernels = {event["args"]["unit"]: event for event in spans if event["pid"] == DEVICES}
    hops = [event for event in spans if event["pid"] == LINKS]
    if set(kernels) != {unit.name for unit in problem.units} or len(kernels) + len(hops) != len(spans):
        raise PlacementError("the trace does not show every unit exactly once")
    place = {name: problem.cluster.devices[event["tid"]] for name, event in kernels.items()}
    for unit in problem.units:
        device = place[unit.name]
        if device.type not in unit.exec_ns:
            raise PlacementError(f"device {device.name!r} cannot run unit {unit.name!r}")
        exec_ns = round(unit.exec_ns[device.type])
        _same(unit.name, _span(kernels[unit.name]), exec_ns + device.dispatch_ns if exec_ns else 0)
    arrivals = _transfers(problem, {name: device.name for name, device in place.items()}, kernels, hops)
    for tensor in problem.tensors:
        for reader in tensor.consumers:
            there = arrivals[tensor.name, place[reader].name]
            if _span(kernels[reader])[0] < there:
                raise PlacementError(f"unit {reader!r} starts before {tensor.name!r} is there")
    for number, device in enumerate(problem.cluster.devices):
        busy = [_span(event) for event in kernels.values() if event["tid"] == number]
        if contention and device.blocking_copy:
            touching = [{link.source, link.destination} for link in problem.cluster.links]
            busy += [_span(event) for event in hops if device.name in touching[event["tid"]]]
        _at_most(f"device {device.name!r}", busy, device.slots)
    if contention:
        ports: dict[object, list[Span]] = {}
        for event in hops:
            ports.setdefault(problem.cluster.links[event["tid"]].port or event["tid"], []).append(_span(event))
        for port, busy in ports.items():
            _at_most(f"port {port!r}", busy, 1)
    return max((_span(event)[1] for event in spans), default=0)


def _transfers(
    problem: Problem,
    place: Mapping[str, str],
    kernels: Mapping[str, Mapping[str, Any]],
    hops: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], int]:
    """When each tensor is on each device that needs it, every hop checked on the way."""
    found = {(event["args"]["tensor"], event["args"]["destination"], event["args"]["hop"]): event for event in hops}
    paths = routes(problem.cluster)
    types = {device.name: device.type for device in problem.cluster.devices}
    arrivals: dict[tuple[str, str], int] = {}
    used = 0
    for tensor in problem.tensors:
        source = place[tensor.producer] if tensor.producer else tensor.home or problem.host
        made = _span(kernels[tensor.producer])[1] if tensor.producer else 0
        arrivals[tensor.name, source] = made
        wanted = {place[reader] for reader in tensor.consumers} | ({problem.host} if tensor.output else set())
        for to in sorted(wanted - {source}):
            time = made
            path = paths.get((source, to), ())
            for position, link in enumerate(path):
                event = found.get((tensor.name, to, position))
                if event is None or event["tid"] != link or _span(event)[0] < time:
                    raise PlacementError(f"tensor {tensor.name!r} does not reach {to!r} along its route")
                duration = hop_ns(problem.cluster.links[link], tensor.size_bytes)
                duration += round(tensor.boundary_ns.get(types[source], 0)) if position == 0 else 0
                duration += round(tensor.boundary_ns.get(types[to], 0)) if position == len(path) - 1 else 0
                _same(tensor.name, _span(event), duration)
                time = _span(event)[1]
                used += 1
            arrivals[tensor.name, to] = time
    if used != len(found):
        raise PlacementError("the trace shows transfers that nothing needs")
    return arrivals


def _span(event: Mapping[str, Any]) -> Span:
    return event["args"]["start_ns"], event["args"]["end_ns"]


def _same(name: str, span: Span, duration_ns: int) -> None:
    if span[1] - span[0] != duration_ns:
        raise PlacementError(f"{name!r} takes {span[1] - span[0]} ns in the trace and {duration_ns} ns by the problem")


def _at_most(what: str, busy: list[Span], limit: int) -> None:
    """Refuse more than `limit` spans at once; what lasts no time never overlaps."""
    edges = sorted(edge for start, end in busy if end > start for edge in ((start, 1), (end, -1)))
    running = 0
    for _, change in edges:
        running += change
        if running > limit:
            raise PlacementError(f"{what} does more than {limit} things at once")
