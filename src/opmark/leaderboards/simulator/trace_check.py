"""Check a trace against its problem without simulating events: that it is possible, and its cost."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, PlacementError, UnknownNameError
from opmark.core.hardware.cluster import Device, Link
from opmark.core.reading import LARGE_BYTES, read_json
from opmark.core.schema import convert
from opmark.leaderboards.problem.decisions.decided import decided
from opmark.leaderboards.problem.fields import Tensor
from opmark.leaderboards.problem.interference import slowed_ends
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.routes import hop_ns, routes
from opmark.leaderboards.problem.rules.objective import OBJECTIVES
from opmark.leaderboards.problem.rules.profile import PublishedModel, profile_named
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.replicas import expand
from opmark.leaderboards.simulator.several_passes import Passes, passes_of
from opmark.leaderboards.simulator.simulate import simulate
from opmark.leaderboards.simulator.trace import DECIDED, DEVICES, LINKS, chrome_trace

Span = tuple[int, int]


def check_trace(problem: Problem, trace: Mapping[str, Any]) -> int:
    """The cost in ns that the events of `trace` add up to. Raises `PlacementError` naming the first impossible event.

    Checks durations, slots, exclusive ports and routes, and that nothing starts before its inputs are there. A
    published model without events is computed again from the placement that the trace shows.
    """
    facts = trace.get("otherData", {})
    if facts.get("problem_id") != problem.id:
        raise PlacementError(f"the trace is of problem {facts.get('problem')!r}, not of this {problem.name!r}")
    rules = profile_named(str(facts.get("profile")))
    spans = [event for event in trace.get("traceEvents", ()) if event.get("ph") == "X"]
    kernels = {event["args"]["unit"]: event for event in spans if event["pid"] == DEVICES}
    hops = [event for event in spans if event["pid"] == LINKS]
    whole, placement, passes = problem, None, None
    if facts.get("device"):
        told = convert({key: facts[key] for key in DECIDED if facts.get(key)}, Solution, where="trace")
        problem, told = decided(problem, told)
        whole, placement = problem, placement_of(problem, told)
        passes = passes_of(problem) if rules.model is None else None
        if passes is not None:
            problem = _copies(problem, passes, placement, kernels)
        elif not problem.pipelined:
            problem = expand(problem, placement).problem
    if set(kernels) != {unit.name for unit in problem.units} or len(kernels) + len(hops) != len(spans):
        raise PlacementError("the trace does not show every unit exactly once")
    place = {name: problem.cluster.devices[event["tid"]] for name, event in kernels.items()}
    for unit in problem.units:
        if place[unit.name].type not in unit.exec_ns:
            raise PlacementError(f"device {place[unit.name].name!r} cannot run unit {unit.name!r}")
    if placement is None:
        device = [kernels[unit.name]["tid"] for unit in problem.units]
        placement = Placement(device=np.array(device, dtype=np.int64))
    if rules.model is not None:
        return _of_model(whole, placement, rules, kernels)
    names = {name: device.name for name, device in place.items()}
    _durations(problem, rules, place, kernels)
    made = dict.fromkeys((tensor.name for tensor in problem.tensors), 0)
    if passes is not None:
        _released(whole, passes, kernels)
        made |= {name: passes.release_ns(whole, name) for name in made}
    made |= {tensor.name: _span(kernels[tensor.producer])[1] for tensor in problem.tensors if tensor.producer}
    arrivals = _transfers(problem, rules, names, made, hops)
    for tensor in problem.tensors:
        for reader in tensor.consumers:
            there = arrivals[tensor.name, place[reader].name]
            if _span(kernels[reader])[0] < there:
                raise PlacementError(f"unit {reader!r} starts before {tensor.name!r} is there")
    _capacities(problem, rules, kernels, hops)
    latency = max((_span(event)[1] for event in spans), default=0)
    if passes is not None:
        ended = [(name, _span(event)[1]) for name, event in kernels.items()]
        ended += [(event["args"]["tensor"], _span(event)[1]) for event in hops]
        latency = passes.latency_of(whole, ended)
    return math.ceil(OBJECTIVES.load(whole.objective).cost(whole, placement, latency, rules))


def _copies(
    problem: Problem, passes: Passes, placement: Placement, kernels: Mapping[str, Mapping[str, Any]]
) -> Problem:
    """The graph of all passes, whose units lie where the placement says."""
    graph, device = passes.graph(problem, placement)
    for unit, number in zip(graph.units, device.tolist(), strict=True):
        if unit.name in kernels and kernels[unit.name]["tid"] != number:
            raise PlacementError(f"unit {unit.name!r} does not run where the placement says")
    return graph


def _released(problem: Problem, passes: Passes, kernels: Mapping[str, Mapping[str, Any]]) -> None:
    """No copy runs before its pass has begun."""
    for name, event in kernels.items():
        if _span(event)[0] < passes.release_ns(problem, name):
            raise PlacementError(f"unit {name!r} starts before its request is there")


def _of_model(
    problem: Problem, placement: Placement, rules: PublishedModel, kernels: Mapping[str, Mapping[str, Any]]
) -> int:
    """A model without events has one schedule per placement: the trace must show it."""
    schedule = simulate(problem, placement, rules)
    for unit, start, end in zip(
        problem.units, schedule.unit_start_ns.tolist(), schedule.unit_end_ns.tolist(), strict=True
    ):
        if _span(kernels[unit.name]) != (start, end):
            raise PlacementError(f"unit {unit.name!r} does not run from {start} to {end} ns")
    return schedule.cost_ns


def _durations(
    problem: Problem,
    rules: PublishedModel,
    place: Mapping[str, Device],
    kernels: Mapping[str, Mapping[str, Any]],
) -> None:
    """Every unit takes its time on its device, slowed by what runs beside it."""
    alone = {}
    for unit in problem.units:
        exec_ns = round(unit.exec_ns[place[unit.name].type])
        alone[unit.name] = exec_ns + place[unit.name].dispatch_ns if exec_ns else 0
    for tensor in () if rules.multicast else problem.tensors:
        if tensor.producer:
            alone[tensor.producer] += _leaving_ns(problem, tensor, place)
    ends = {name: _span(event)[0] + alone[name] for name, event in kernels.items()}
    if problem.interference:
        for device in problem.cluster.devices:
            starts = [(_span(event)[0], name) for name, event in kernels.items() if place[name] == device]
            ends |= slowed_ends(problem, device.type, starts, alone)
    for name, event in kernels.items():
        _same(name, _span(event), ends[name] - _span(event)[0])


def _leaving_ns(problem: Problem, tensor: Tensor, place: Mapping[str, Device]) -> int:
    """The layout cost that the producer pays, if its device makes its own copies and another one needs the tensor."""
    source = place[tensor.producer]
    wanted = {place[reader].name for reader in tensor.consumers} | ({problem.host} if tensor.output else set())
    leaves = source.own_copies and bool(wanted - {source.name})
    return round(tensor.boundary_ns.get(source.type, 0)) if leaves else 0


def _capacities(
    problem: Problem, rules: PublishedModel, kernels: Mapping[str, Mapping[str, Any]], hops: Sequence[Mapping[str, Any]]
) -> None:
    """No device runs more than it has slots, no port carries two tensors at once."""
    links = problem.cluster.links
    for number, device in enumerate(problem.cluster.devices):
        busy = [_span(event) for event in kernels.values() if event["tid"] == number]
        if rules.contention and (device.blocking_copy or device.own_copies):
            for event in hops:
                link = links[event["tid"]]
                leaves = device.blocking_copy and device.name == link.source
                if leaves or (not rules.multicast and device.name == link.destination):
                    busy.append(_span(event))
        _at_most(f"device {device.name!r}", busy, device.slots)
    if rules.contention:
        ports: dict[object, list[Span]] = {}
        for event in hops:
            for port in _ports(rules, links[event["tid"]], event["tid"]):
                ports.setdefault(port, []).append(_span(event))
        for port, busy in ports.items():
            _at_most(f"port {port!r}", busy, 1)


def _ports(rules: PublishedModel, link: Link, number: int) -> set[object]:
    """The ports that a transfer on a link occupies: its own port, both ends, or its source's bus."""
    if rules.half_duplex:
        return {link.source, link.destination}
    return {link.source if rules.multicast else link.port or number}


def _transfers(
    problem: Problem,
    rules: PublishedModel,
    place: Mapping[str, str],
    made_ns: Mapping[str, int],
    hops: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], int]:
    """The arrival of each tensor on each device that needs it; every hop is checked on the way."""
    found = {(event["args"]["tensor"], event["args"]["destination"], event["args"]["hop"]): event for event in hops}
    paths = routes(problem.cluster)
    types = {device.name: device.type for device in problem.cluster.devices}
    own_copies = {device.name for device in problem.cluster.devices if device.own_copies}
    arrivals: dict[tuple[str, str], int] = {}
    used = 0
    for tensor in problem.tensors:
        source = place[tensor.producer] if tensor.producer else tensor.home or problem.host
        made = made_ns[tensor.name]
        arrivals[tensor.name, source] = made
        wanted = {place[reader] for reader in tensor.consumers} | ({problem.host} if tensor.output else set())
        if rules.multicast:
            away = [device.name for device in problem.cluster.devices if device.name in wanted - {source}]
            if away:
                event = found.get((tensor.name, away[0], 0))
                if event is None or problem.cluster.links[event["tid"]].source != source or _span(event)[0] < made:
                    raise PlacementError(f"tensor {tensor.name!r} is not sent from {source!r} to its readers")
                _same(tensor.name, _span(event), max(_way_ns(problem, tensor, paths, source, to) for to in away))
                arrivals |= {(tensor.name, to): _span(event)[1] for to in away}
                used += 1
            continue
        for to in sorted(wanted - {source}):
            time = made
            path = paths.get((source, to), ())
            for position, link in enumerate(path):
                event = found.get((tensor.name, to, position))
                if event is None or event["tid"] != link or _span(event)[0] < time:
                    raise PlacementError(f"tensor {tensor.name!r} does not reach {to!r} along its route")
                duration = hop_ns(problem.cluster.links[link], tensor.size_bytes)
                paid = bool(tensor.producer) and source in own_copies
                duration += round(tensor.boundary_ns.get(types[source], 0)) if position == 0 and not paid else 0
                duration += round(tensor.boundary_ns.get(types[to], 0)) if position == len(path) - 1 else 0
                _same(tensor.name, _span(event), duration)
                time = _span(event)[1]
                used += 1
            arrivals[tensor.name, to] = time
    if used != len(found):
        raise PlacementError("the trace shows transfers that nothing needs")
    return arrivals


def _way_ns(
    problem: Problem, tensor: Tensor, paths: Mapping[tuple[str, str], tuple[int, ...]], source: str, to: str
) -> int:
    """Every hop of a tensor's way and both layout costs."""
    types = {device.name: device.type for device in problem.cluster.devices}
    layout = sum(round(tensor.boundary_ns.get(types[end], 0)) for end in (source, to))
    return layout + sum(hop_ns(problem.cluster.links[link], tensor.size_bytes) for link in paths[source, to])


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTrace:
    """A possible trace with the cost that it states; `same` is None if it was compared with no solution."""

    profile: str
    cost_ns: int
    kernels: int
    transfers: int
    same: bool | None


def check_trace_file(problem: Problem, path: Path, solution: Solution | None = None) -> CheckedTrace:
    """Check the trace in `path`; with its `solution` it must also equal the trace that the simulation gives.

    Raises `ContentError` for a file that is no trace of OpMark, `PlacementError` for a trace that is impossible or
    states a wrong cost. Both name the file.
    """
    trace = read_json(path, at_most=LARGE_BYTES)
    try:
        cost = check_trace(problem, trace)
        facts, rows = trace["otherData"], [event["pid"] for event in trace["traceEvents"] if event["ph"] == "X"]
        stated, profile = facts["cost_ns"], profile_named(facts["profile"])
    except PlacementError as error:
        raise PlacementError(error.message, where=error.where or str(path), hint=error.hint) from error
    except UnknownNameError as error:
        raise ContentError(error.message, where=f"{path}: otherData.profile", hint=error.hint) from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ContentError(
            f"not a trace that OpMark wrote: {type(error).__name__} {error}",
            where=str(path),
            hint="`opmark leaderboards simulate … --trace FILE` writes one",
        ) from error
    if stated != cost:
        raise PlacementError(f"its events cost {cost} ns, and it says {stated} ns", where=f"{path}: otherData.cost_ns")
    same = None
    if solution is not None:
        same = True
        expected = plain(chrome_trace(problem, evaluate(problem, solution, profile), profile))
        if trace != expected:
            raise PlacementError(
                f"simulating the solution gives another trace: {_first(trace, expected)}", where=str(path)
            )
    return CheckedTrace(
        profile=profile.name,
        cost_ns=cost,
        kernels=rows.count(DEVICES),
        transfers=rows.count(LINKS),
        same=same,
    )


def _first(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first difference between two traces."""
    events, wanted = found["traceEvents"], expected["traceEvents"]
    for number, (one, other) in enumerate(zip(events, wanted, strict=False)):
        if one != other:
            return f"event {number}, {one.get('name')!r}"
    if len(events) != len(wanted):
        return f"{len(events)} events instead of {len(wanted)}"
    return "in what is said beside its events"
