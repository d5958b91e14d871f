"""Folds blocks of samples into one row: labels, quantiles, and figures of their reliability."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from opmark.core.measurements.estimate import LABEL_QUANTILE, half_width, label, median, quantiles, variation
from opmark.core.measurements.measurement import QUANTILES, USABLE, Measurement, NetworkMeasurement
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, Block, Done, KernelTrial, NetworkTrial

# A shorter time of a copy is noise of the clock.
RESOLUTION_NS = 1.0


class Scheduled(Protocol):
    """A record of samples that notes how its process was scheduled."""

    @property
    def scheduling(self) -> str:
        """One of `fifo`, `normal`, `contended`, `unfiltered`, or `device`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """One label: the median over processes of each one's `label_quantile` of clean samples, in ns.

    `half_width` is the 95 % confidence half-width of the label, as a fraction of it: the
    half-widths of all processes, averaged as independent ones. `variation` is the disagreement between processes.
    """

    latency_ns: float
    quantiles_ns: tuple[float, ...]
    half_width: float
    variation: float | None
    clean_fraction: float
    samples: int
    processes: int
    label_quantile: float = LABEL_QUANTILE


def fold(blocks: Sequence[Block], which: str, overhead_ns: float) -> Folded | None:
    """The samples of the label `which`, folded; None where there are none."""
    wanted = [block for block in blocks if block.label == which]
    if not wanted:
        return None
    by_process: dict[int, list[Block]] = defaultdict(list)
    for block in wanted:
        by_process[block.process].append(block)
    fraction = wanted[0].label_quantile
    per_process = [list(_kernel_times(group, overhead_ns)) for group in by_process.values()]
    pooled = [ns for times in per_process for ns in times]
    labels = [label(times, fraction) for times in per_process]
    flags = "".join(block.clean for block in wanted)
    return Folded(
        latency_ns=max(RESOLUTION_NS, median(labels)),
        quantiles_ns=tuple(max(RESOLUTION_NS, ns) for ns in quantiles(pooled, QUANTILES)),
        half_width=_together([half_width(times, fraction) for times in per_process]),
        variation=variation(labels),
        clean_fraction=flags.count("1") / len(flags),
        samples=len(pooled),
        processes=len(per_process),
        label_quantile=fraction,
    )


def fold_kernel(
    trial: KernelTrial, done: Done, blocks: Sequence[Block], *, overhead_ns: float, suite: str, environment_id: str
) -> Measurement:
    """The row of a finished kernel trial."""
    row = partial(
        Measurement,
        kernel=trial.kernel,
        work=trial.work,
        target=trial.target,
        status=done.status,
        reason=done.reason,
        suite=suite,
        environment_id=environment_id,
    )
    hot = fold(blocks, HOT, overhead_ns) if done.status in USABLE else None
    if hot is None:
        return row()
    rotated = fold(blocks, ROTATED, overhead_ns)
    first = next(block for block in blocks if block.label == HOT)
    return row(
        latency_hot_ns=hot.latency_ns,
        latency_rotated_ns=rotated.latency_ns if rotated else None,
        overhead_ns=_enqueue_ns(blocks, overhead_ns),
        construction=first.construction,
        hot_quantiles_ns=hot.quantiles_ns,
        rotated_quantiles_ns=rotated.quantiles_ns if rotated else (),
        clean_fraction=hot.clean_fraction,
        clock_ratio=_clock_ratio(blocks, HOT),
        between_process_variation=hot.variation,
        faults_per_call=_faults(blocks, HOT),
        samples=hot.samples,
        processes=hot.processes,
        scheduling=worst_scheduling(blocks),
    )


def fold_network(
    trial: NetworkTrial, done: Done, blocks: Sequence[Block], *, suite: str, environment_id: str
) -> NetworkMeasurement:
    """The row of a finished network trial; the latency includes the cost of the call."""
    row = partial(
        NetworkMeasurement,
        network=trial.network,
        family=trial.family,
        target=trial.target,
        graph_id=trial.graph_id,
        role=trial.role,
        batch=trial.batch,
        size=trial.size,
        status=done.status,
        reason=done.reason,
        peak_memory_bytes=max((block.peak_memory_bytes or 0 for block in blocks), default=0) or None,
        scheduling=worst_scheduling(blocks),
        suite=suite,
        environment_id=environment_id,
    )
    folded = fold(blocks, NETWORK, 0.0) if done.status in USABLE else None
    if folded is None:
        return row()
    return row(
        latency_ns=folded.latency_ns,
        quantiles_ns=folded.quantiles_ns,
        faults_per_call=_faults(blocks, NETWORK),
        clean_fraction=folded.clean_fraction,
        clock_ratio=_clock_ratio(blocks, NETWORK),
        samples=folded.samples,
        processes=folded.processes,
    )


def clean_samples(times: Sequence[float], flags: str) -> list[float]:
    """The samples flagged `1`, or all of them where none is."""
    clean = [ns for ns, flag in zip(times, flags, strict=True) if flag == "1"]
    return clean or list(times)


def worst_scheduling(blocks: Iterable[Scheduled]) -> str:
    """The scheduling of all blocks, or the least favourable one where they differ."""
    ways = {block.scheduling for block in blocks}
    return next((way for way in ("unfiltered", "contended", "normal", "fifo", "device") if way in ways), "normal")


def _together(half_widths: Sequence[float]) -> float:
    return math.sqrt(sum(width**2 for width in half_widths)) / len(half_widths)


def _kernel_times(blocks: Sequence[Block], overhead_ns: float) -> Iterator[float]:
    """The clean samples of one process, or all where none is clean, as times of one kernel at the usual clock."""
    bases: dict[int, list[float]] = defaultdict(list)
    for block in blocks:
        if block.base_copies:
            bases[block.base_copies] += [
                ns / block.clock_ratio for ns in clean_samples(block.base_ns, block.base_clean)
            ]
    fraction = blocks[0].label_quantile
    fixed = {copies: label(times, fraction) for copies, times in bases.items()}
    anything_clean = any("1" in block.clean for block in blocks)
    for block in blocks:
        outside_ns = overhead_ns if block.enqueue_ns is None else 0.0
        below = fixed[block.base_copies] if block.base_copies else outside_ns
        for ns, flag in zip(block.ns, block.clean, strict=True):
            if flag == "1" or not anything_clean:
                yield (ns / block.clock_ratio - below) / (block.copies - block.base_copies)


def _enqueue_ns(blocks: Sequence[Block], overhead_ns: float) -> float:
    """The cost of one call on the host: for a device, the time to enqueue it."""
    found = [block.enqueue_ns for block in blocks if block.label == HOT and block.enqueue_ns is not None]
    return median(found) if found else overhead_ns


def _clock_ratio(blocks: Sequence[Block], which: str) -> float:
    return median([block.clock_ratio for block in blocks if block.label == which])


def _faults(blocks: Sequence[Block], which: str) -> float:
    return median([block.faults_per_call for block in blocks if block.label == which])
