"""From blocks of samples to one row: the labels, their quantiles, and what made them trustworthy or not."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opmark.core.estimate import LABEL_QUANTILE, half_width, label, median, quantiles, variation
from opmark.core.measurement import QUANTILES, USABLE, Measurement, NetworkMeasurement
from opmark.core.records import HOT, NETWORK, ROTATED, Block, Done, KernelTrial, NetworkTrial

# A copy's own time below this is the clock's noise.
RESOLUTION_NS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """One label: the median over processes of each one's `label_quantile` of clean samples, in ns.

    `half_width` is the 95 % confidence half-width of the label, as a fraction of it: that of each process's
    quantile, averaged as independent ones. How far processes disagree is `variation`, and no part of it.
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
    """Samples of the label `which`, folded; None where there are none."""
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
    hot = fold(blocks, HOT, overhead_ns) if done.status in USABLE else None
    if hot is None:
        return Measurement(
            kernel=trial.kernel,
            work=trial.work,
            target=trial.target,
            status=done.status,
            reason=done.reason,
            suite=suite,
            environment_id=environment_id,
        )
    rotated = fold(blocks, ROTATED, overhead_ns)
    first = next(block for block in blocks if block.label == HOT)
    return Measurement(
        kernel=trial.kernel,
        work=trial.work,
        target=trial.target,
        status=done.status,
        reason=done.reason,
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
        scheduling=_scheduling(blocks),
        suite=suite,
        environment_id=environment_id,
    )


def fold_network(
    trial: NetworkTrial, done: Done, blocks: Sequence[Block], *, suite: str, environment_id: str
) -> NetworkMeasurement:
    """The row of a finished network trial; the call's own cost is part of it."""
    folded = fold(blocks, NETWORK, 0.0) if done.status in USABLE else None
    return NetworkMeasurement(
        network=trial.network,
        family=trial.family,
        target=trial.target,
        graph_id=trial.graph_id,
        role=trial.role,
        batch=trial.batch,
        size=trial.size,
        status=done.status,
        reason=done.reason,
        latency_ns=folded.latency_ns if folded else None,
        quantiles_ns=folded.quantiles_ns if folded else (),
        peak_memory_bytes=max((block.peak_memory_bytes or 0 for block in blocks), default=0) or None,
        faults_per_call=_faults(blocks, NETWORK) if folded else None,
        clean_fraction=folded.clean_fraction if folded else None,
        clock_ratio=_clock_ratio(blocks, NETWORK) if folded else None,
        samples=folded.samples if folded else 0,
        processes=folded.processes if folded else 0,
        scheduling=_scheduling(blocks),
        suite=suite,
        environment_id=environment_id,
    )


def _together(half_widths: Sequence[float]) -> float:
    return math.sqrt(sum(width**2 for width in half_widths)) / len(half_widths)


def _kernel_times(blocks: Sequence[Block], overhead_ns: float) -> Iterator[float]:
    """Every clean sample of one process as the time of one kernel; all samples where none is clean.

    All are times at the processor's usual clock.
    """
    bases: dict[int, list[float]] = defaultdict(list)
    for block in blocks:
        if block.base_copies:
            bases[block.base_copies] += [ns / block.clock_ratio for ns in _clean(block.base_ns, block.base_clean)]
    fraction = blocks[0].label_quantile
    fixed = {copies: label(times, fraction) for copies, times in bases.items()}
    anything_clean = any("1" in block.clean for block in blocks)
    for block in blocks:
        outside_ns = overhead_ns if block.enqueue_ns is None else 0.0
        below = fixed[block.base_copies] if block.base_copies else outside_ns
        for ns, flag in zip(block.ns, block.clean, strict=True):
            if flag == "1" or not anything_clean:
                yield (ns / block.clock_ratio - below) / (block.copies - block.base_copies)


def _clean(times: Sequence[float], flags: str) -> list[float]:
    clean = [ns for ns, flag in zip(times, flags, strict=True) if flag == "1"]
    return clean or list(times)


def _enqueue_ns(blocks: Sequence[Block], overhead_ns: float) -> float:
    """What one call costs the host: of a device, the time to hand it over."""
    found = [block.enqueue_ns for block in blocks if block.label == HOT and block.enqueue_ns is not None]
    return median(found) if found else overhead_ns


def _clock_ratio(blocks: Sequence[Block], which: str) -> float:
    return median([block.clock_ratio for block in blocks if block.label == which])


def _faults(blocks: Sequence[Block], which: str) -> float:
    return median([block.faults_per_call for block in blocks if block.label == which])


def _scheduling(blocks: Sequence[Block]) -> str:
    """How every block was scheduled, or the least favourable way where they differ."""
    ways = {block.scheduling for block in blocks}
    return next((way for way in ("unfiltered", "contended", "normal", "fifo", "device") if way in ways), "normal")
