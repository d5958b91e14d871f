"""What it costs to hand a tensor from one core of this machine to another: a wake-up, then a copy."""

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from opmark.core.estimate import quantile

SIZES_BYTES = tuple(4**power for power in range(3, 14))
_SAMPLES = 60
_SAMPLE_NS = 200_000
_WAKE_UPS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLink:
    """`points` are (bytes, ns) of a copy in ascending bytes; `wake_up_ns` is half a round trip over a pipe."""

    wake_up_ns: int
    points: tuple[tuple[int, int], ...]

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The rate between the two largest copies."""
        (small, small_ns), (large, large_ns) = self.points[-2:]
        return (large - small) * 1e9 / max(large_ns - small_ns, 1)


def measure_core_link() -> CoreLink:
    """The link between two cores that share memory; takes about two seconds. 10th percentiles, as everywhere."""
    return CoreLink(wake_up_ns=_wake_up_ns(), points=tuple(_rising([(size, _copy_ns(size)) for size in SIZES_BYTES])))


def _copy_ns(size_bytes: int) -> int:
    import numpy as np

    source = np.ones(size_bytes, dtype=np.uint8)
    destination = np.zeros_like(source)
    repeats = max(1, round(_SAMPLE_NS / max(_timed(lambda: np.copyto(destination, source), 3), 1)))
    samples = [_timed(lambda: np.copyto(destination, source), repeats) for _ in range(_SAMPLES)]
    return max(1, round(quantile(samples, 0.1)))


def _timed(call: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(repeats):
        call()
    return (time.perf_counter_ns() - start) / repeats


def _rising(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same points, none faster than a smaller one."""
    rising: list[tuple[int, int]] = []
    for size, latency_ns in points:
        rising.append((size, max([latency_ns, *(earlier for _, earlier in rising)])))
    return rising


def _wake_up_ns() -> int:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    partner = context.Process(target=_echo, args=(theirs,), daemon=True)
    partner.start()
    theirs.close()
    try:
        samples = [_round_trip_ns(mine) for _ in range(_WAKE_UPS)]
    finally:
        mine.send_bytes(b"")
        partner.join(timeout=5)
        mine.close()
    return round(quantile(samples[len(samples) // 4 :], 0.1) / 2)


def _round_trip_ns(connection: Connection) -> int:
    start = time.perf_counter_ns()
    connection.send_bytes(b"x")
    connection.recv_bytes()
    return time.perf_counter_ns() - start


def _echo(connection: Connection) -> None:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[-1]})
    while message := connection.recv_bytes():
        connection.send_bytes(message)
