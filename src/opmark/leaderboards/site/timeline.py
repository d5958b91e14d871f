"""A simulated schedule as a picture's bars: units on their devices, transfers on the links they take."""

import re

from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.memory import memory_steps
from opmark.pages.gantt import TRANSFER, Bar
from opmark.pages.overlay import Arrow, MemoryCurve
from opmark.pages.timeline import Timeline

_NUMBERED = re.compile(r"[\s_.:#-]*\d+$")
_OPERATOR = re.compile(r"[/.:]")


def timeline_of(problem: Problem, evaluation: Evaluation) -> Timeline:
    """Every unit that takes time and every hop of every transfer; links that carry nothing have no lane."""
    problem, placement, schedule = evaluation.shown(problem)
    devices = [device.name for device in problem.cluster.devices]
    bars = [
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
    links = [f"{link.source} → {link.destination}" for link in problem.cluster.links]
    used: set[str] = set()
    arrows = []
    offsets = schedule.hop_offsets.tolist()
    hops = list(
        zip(schedule.hop_link.tolist(), schedule.hop_start_ns.tolist(), schedule.hop_end_ns.tolist(), strict=True)
    )
    for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
        way = hops[offsets[transfer] : offsets[transfer + 1]]
        if way and way[-1][2] > way[0][1]:
            ends = problem.cluster.links[way[0][0]].source, problem.cluster.links[way[-1][0]].destination
            name = problem.tensors[tensor].name
            span = way[0][1], way[-1][2]
            arrows.append(Arrow(source=ends[0], destination=ends[1], start_ns=span[0], end_ns=span[1], label=name))
        for link, start, end in way:
            used.add(links[link])
            if end > start:
                name = problem.tensors[tensor].name
                bars.append(Bar(lane=links[link], start_ns=start, end_ns=end, label=name, kind=TRANSFER))
    lanes = (*devices, *dict.fromkeys(name for name in links if name in used))
    memory = _memory(problem, placement, schedule)
    return Timeline(lanes=lanes, bars=tuple(bars), arrows=tuple(arrows), memory=memory)


def _memory(problem: Problem, placement: Placement, schedule: Schedule) -> tuple[MemoryCurve, ...]:
    """One curve per device. Where memory does not follow the liveness of tensors, the peak is held throughout."""
    if profile_named(problem.profile).model is not None:
        return ()  # published cost models say nothing about when memory is held
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
    """What a unit is called without its module path and number: `/mixed/branch1/Conv_12` is a `Conv`."""
    last = next((part for part in reversed(_OPERATOR.split(unit)) if part and not part.isdigit()), unit)
    return _NUMBERED.sub("", last) or last
