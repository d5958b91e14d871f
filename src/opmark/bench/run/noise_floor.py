"""The noise floor: how well one look can tell a label on this machine at the moment, at best."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.bench.clock.clock import Call, Clock
from opmark.bench.clock.turns import Part, sentinel_part, take_turns
from opmark.bench.worker.backend import Prepared
from opmark.core.measurements.estimate import median
from opmark.core.measurements.labelling import labels_of
from opmark.core.measurements.looks import STATES, Look

_KERNEL_SIDE = 192
_NETWORK_SIDE = 384
_NETWORK_LAYERS = 6
_TURNS = 6
_LEAST_LOOKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """Deviations between looks in one process, told at the usual state, as fractions of the label.

    `kernels` is that of a matrix product of some tenths of a millisecond, `networks` that of some milliseconds of
    products and copies in single calls. Differences between processes come on top.
    """

    kernels: float
    networks: float


def pieces_of_work() -> dict[str, Call]:
    """The work of each floor: a matrix product, and products and copies in a row."""
    return {"kernels": _product(_KERNEL_SIDE), "networks": _layers()}


def measure_floor(
    clock: Clock, sentinels: Mapping[str, Prepared], pieces: Mapping[str, Call], seconds: float
) -> NoiseFloor:
    """Look at both pieces of work in turns for about `seconds`, each at least four times."""
    beside = {name: sentinel_part(item.call, clock.warm_up(item.call)) for name, item in sentinels.items()}
    parts = {}
    for name, call in pieces.items():
        latency_ns = clock.warm_up(call)
        parts[name] = Part(call=call, calls=clock.calls(latency_ns) if name == "kernels" else 1)
    taken: dict[str, list[tuple[tuple[float, ...], Mapping[str, tuple[float, ...]]]]] = {name: [] for name in parts}
    end_ns = clock.timer.now_ns() + seconds * 1e9
    while clock.timer.now_ns() < end_ns or min(map(len, taken.values())) < _LEAST_LOOKS:
        for name, part in parts.items():
            turns = take_turns(clock, [part], beside, turns=_TURNS)
            taken[name].append((turns.samples[0].ns, turns.readings))
        clock.timer.sleep(0.02)
    readings = [found for looks in taken.values() for _, found in looks]
    usual = {name: median([ns for found in readings for ns in found[name]]) for name in STATES}
    return NoiseFloor(**{name: _deviation(looks, usual) for name, looks in taken.items()})


def _deviation(
    looks: list[tuple[tuple[float, ...], Mapping[str, tuple[float, ...]]]], usual: Mapping[str, float]
) -> float:
    """The deviation between looks, as if each were of another process."""
    found = [
        Look(process=number, ns=ns, state=np.stack([_beside(readings[name], usual[name]) for name in STATES], axis=1))
        for number, (ns, readings) in enumerate(looks)
    ]
    return labels_of({0: found}, calm=False)[0].between


def _beside(readings: tuple[float, ...], usual_ns: float) -> Any:
    logs = np.log(np.array(readings) / usual_ns)
    return (logs[1:] + logs[:-1]) / 2


def _product(side: int) -> Call:
    left = np.full((side, side), 1 / math.sqrt(side), dtype=np.float32)
    out = np.empty_like(left)
    return lambda: np.matmul(left, left, out=out)


def _layers() -> Call:
    layers = [_product(_NETWORK_SIDE) for _ in range(_NETWORK_LAYERS)]
    source = np.ones((1 << 20,), dtype=np.float32)
    out = np.empty_like(source)

    def call() -> None:
        for layer in layers:
            layer()
            np.copyto(out, source)

    return call
