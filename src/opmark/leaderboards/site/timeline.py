"""Turn a simulated schedule into a timeline: units on their devices, transfers on their links."""

import re

from opmark.core.hardware.cluster import Link
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.memory import memory_steps
from opmark.pages.gantt import TRANSFER, Bar, GanttTimeline
from opmark.pages.overlay import Arrow, MemoryCurve

_NUMBERED = re.compile(r"[\s_.:#-]*\d+$")
_OPERATOR = re.compile(r"[/.:]")


def timeline_of(problem: Problem, evaluation: Evaluation) -> GanttTimeline:
    """Bars for all units that take time and all hops of transfers; links without transfers have no lane."""
    problem, placement, schedule = evaluation.shown(problem)
    devices = [device.name for device in problem.cluster.devices]
    units = [
        Bar(lane=devices[device], start_ns=start, end_ns=end, label=unit.name, kind=unit.kind or operator(unit.name))
        for unit, device, start, end in zip(
            problem.units,
            placement.device.tolist(),
            schedule.unit_start_ns.tolist(),
            schedule.unit_end_ns.tolist(),
            strict=True,
        )
        if end > start
    ]
    transfers, arrows, used = _transfers(problem, schedule)
    lanes = (*devices, *dict.fromkeys(name for name in map(_lane, problem.cluster.links) if name in used))
    memory = _memory(problem, placement, schedule)
    return GanttTimeline(lanes=lanes, bars=(*units, *transfers), arrows=tuple(arrows), memory=memory)


def _lane(link: Link) -> str:
    """The name of a link's lane."""
    return f"{link.source} → {link.destination}"


def _transfers(problem: Problem, schedule: Schedule) -> tuple[list[Bar], list[Arrow], set[str]]:
    """The bars and arrows of all transfers, and the lanes that carry one."""
    links = problem.cluster.links
    lanes = [_lane(link) for link in links]
    offsets = schedule.hop_offsets.tolist()
    columns = schedule.hop_link.tolist(), schedule.hop_start_ns.tolist(), schedule.hop_end_ns.tolist()
    hops = list(zip(*columns, strict=True))
    bars, arrows, used = [], [], set()
    for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
        name = problem.tensors[tensor].name
        way = hops[offsets[transfer] : offsets[transfer + 1]]
        if way and way[-1][2] > way[0][1]:
            source, destination = links[way[0][0]].source, links[way[-1][0]].destination
            span = way[0][1], way[-1][2]
            arrows.append(Arrow(source=source, destination=destination, start_ns=span[0], end_ns=span[1], label=name))
        for link, start, end in way:
            used.add(lanes[link])
            if end > start:
                bars.append(Bar(lane=lanes[link], start_ns=start, end_ns=end, label=name, kind=TRANSFER))
    return bars, arrows, used


def _memory(problem: Problem, placement: Placement, schedule: Schedule) -> tuple[MemoryCurve, ...]:
    """One curve per device; a constant line at the peak in memory modes other than `liveness`."""
    if profile_named(problem.profile).model is not None:
        return ()  # published cost models do not define memory over time
    if problem.memory_mode == "liveness":
        steps = memory_steps(problem, placement, schedule)
    else:
        steps = [[(0, peak)] for peak in schedule.peak_bytes.tolist()]
    devices = problem.cluster.devices
    return tuple(
        MemoryCurve(lane=device.name, steps=tuple(row), limit_bytes=device.memory_bytes)
        for device, row in zip(devices, steps, strict=True)
        if row
    )


def operator(unit: str) -> str:
    """A unit's name without module path and number: `/mixed/branch1/Conv_12` gives `Conv`."""
    last = next((part for part in reversed(_OPERATOR.split(unit)) if part and not part.isdigit()), unit)
    return _NUMBERED.sub("", last) or last
