"""A simulated schedule as a picture's bars: units on their devices, transfers on the links they take."""

import re

from opmark.leaderboards.evaluation import Evaluation
from opmark.leaderboards.pictures.gantt import TRANSFER, Bar
from opmark.leaderboards.pictures.timeline import Timeline
from opmark.leaderboards.problem import Problem

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
    offsets = schedule.hop_offsets.tolist()
    hops = list(
        zip(schedule.hop_link.tolist(), schedule.hop_start_ns.tolist(), schedule.hop_end_ns.tolist(), strict=True)
    )
    for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
        for link, start, end in hops[offsets[transfer] : offsets[transfer + 1]]:
            used.add(links[link])
            if end > start:
                name = problem.tensors[tensor].name
                bars.append(Bar(lane=links[link], start_ns=start, end_ns=end, label=name, kind=TRANSFER))
    lanes = (*devices, *dict.fromkeys(name for name in links if name in used))
    return Timeline(lanes=lanes, bars=tuple(bars))


def operator(unit: str) -> str:
    """What a unit is called without its module path and number: `/mixed/branch1/Conv_12` is a `Conv`."""
    last = next((part for part in reversed(_OPERATOR.split(unit)) if part and not part.isdigit()), unit)
    return _NUMBERED.sub("", last) or last
