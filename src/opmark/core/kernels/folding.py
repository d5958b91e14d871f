"""Folds blocks of samples into one row: labels at one state of the machine, quantiles, and signs of reliability."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Protocol

from opmark.core.measurements.calm_readings import calm_beside
from opmark.core.measurements.estimate import label, median, quantiles, variation
from opmark.core.measurements.labelling import Label
from opmark.core.measurements.looks import STATES, STOLEN, Look
from opmark.core.measurements.measurement import (
    QUANTILES,
    USABLE,
    Measurement,
    NetworkMeasurement,
    reason_of,
    status_of,
)
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, Block, Done, KernelTrial, NetworkTrial

# A shorter time of a copy is noise of the clock.
RESOLUTION_NS = 1.0
# A machine changes its state within a few milliseconds: readings tell that of shorter samples.
_BRIEF_NS = 2e6


class Scheduled(Protocol):
    """A record of samples that notes how its process was scheduled."""

    @property
    def scheduling(self) -> str:
        """One of `fifo`, `normal`, `contended`, `unfiltered`, or `device`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLabels:
    """The labels of one trial by name (`hot`, `rotated`, `network`), and its blocks."""

    labels: Mapping[str, Label]
    blocks: Sequence[Block]

    @property
    def status(self) -> str:
        """The status of the main label."""
        return status_of(self.main.standard_error)

    @property
    def main(self) -> Label:
        """The label that decides the status: that of the network, or the hot one."""
        return self.labels[NETWORK] if NETWORK in self.labels else self.labels[HOT]

    def of(self, which: str) -> list[Block]:
        """The blocks of one label."""
        return [block for block in self.blocks if block.label == which]


def look_of(
    block: Block,
    told_at: Mapping[str, float],
    of_round: Mapping[str, float] | None,
    overhead_ns: float,
    *,
    calm: bool = True,
) -> Look:
    """The clean samples of `block` as times of one kernel, and the state beside each, relative to readings `told_at`.

    Without interleaved sentinels, the readings of its round are beside every sample. All readings are in ns.
    """
    logs = _logs(block, told_at)
    states = _states(block, logs, told_at, of_round)
    outside_ns = overhead_ns if block.enqueue_ns is None and block.label != NETWORK else 0.0
    # What disturbs the base must not shorten the times above it, so that calm samples can be told by their times.
    below = label(clean_samples(block.base_ns, block.base_clean)) if block.base_copies else outside_ns
    paired = not calm and len(block.base_ns) == len(block.ns)
    anything_clean = "1" in block.clean
    chosen = [index for index, flag in enumerate(block.clean) if flag == "1" or not anything_clean]
    each = block.copies - block.base_copies
    return Look(
        process=block.process,
        ns=[
            max(RESOLUTION_NS, (block.ns[index] - (block.base_ns[index] if paired else below)) / each)
            for index in chosen
        ],
        state=[states[index] for index in chosen],
        brief=median(block.ns) * block.calls <= _BRIEF_NS,
        readings=max(map(len, logs.values()), default=0),
        unrest=tuple(_unrest(logs.get(name, ())) for name in STATES),
    )


def _logs(block: Block, told_at: Mapping[str, float]) -> dict[str, list[float]]:
    """The logarithm of every reading over that of the labels' state after work of that length, by sentinel."""
    found = {}
    for name in STATES:
        if name in told_at and block.sentinels.get(name):
            first, later = calm_beside(told_at, name, block)
            found[name] = [math.log(ns / (later if place else first)) for place, ns in enumerate(block.sentinels[name])]
    return found


def _unrest(logs: Sequence[float]) -> float:
    """The variance of a look's readings, without stolen ones; 0 for fewer than two."""
    whole = _whole(logs, median(logs)) if logs else []
    if len(whole) < 2:
        return 0.0
    # The standard library's variance computes with fractions: it took a third of the time of all labels.
    middle = fmean(whole)
    return sum((one - middle) ** 2 for one in whole) / (len(whole) - 1)


def _states(
    block: Block,
    logs: Mapping[str, Sequence[float]],
    told_at: Mapping[str, float],
    of_round: Mapping[str, float] | None,
) -> Sequence[tuple[float, ...]]:
    """The state beside every sample: the mean of the readings (`logs`) before and after its turn.

    A stolen one counts only between two of them: in a look of few turns it would stand beside most samples.
    """
    columns = []
    for name in STATES:
        if name not in told_at:
            columns.append([0.0] * len(block.ns))
        elif name in logs:
            each = len(block.ns) // (len(logs[name]) - 1)
            middle = median(logs[name])
            beside = [fmean(_whole(pair, middle) or pair) for pair in pairwise(logs[name])]
            columns.append([state for state in beside for _ in range(each)])
        else:
            constant = math.log(of_round[name] / told_at[name]) if of_round and name in of_round else 0.0
            columns.append([constant] * len(block.ns))
    return list(zip(*columns, strict=True))


def _whole(logs: Sequence[float], middle: float) -> list[float]:
    """The readings that were not stolen."""
    return [one for one in logs if one - middle <= STOLEN]


def fold_kernel(
    trial: KernelTrial,
    done: Done | None,
    found: TrialLabels | None,
    *,
    overhead_ns: float,
    suite: str,
    environment_id: str,
) -> Measurement:
    """The row of a kernel trial that has labels, or that could not be measured."""
    row = partial(
        Measurement,
        kernel=trial.kernel,
        work=trial.work,
        target=trial.target,
        suite=suite,
        environment_id=environment_id,
    )
    if done is not None and done.status not in USABLE:
        return row(status=done.status, reason=done.reason)
    assert found is not None
    hot, rotated = found.labels[HOT], found.labels.get(ROTATED)
    blocks = found.of(HOT)
    return row(
        status=found.status,
        reason=reason_of(found.main.standard_error),
        latency_hot_ns=hot.latency_ns,
        latency_rotated_ns=rotated.latency_ns if rotated else None,
        standard_error_hot=hot.standard_error,
        standard_error_rotated=rotated.standard_error if rotated else None,
        overhead_ns=_enqueue_ns(blocks, overhead_ns),
        construction=blocks[0].construction,
        hot_quantiles_ns=_quantiles(hot),
        rotated_quantiles_ns=_quantiles(rotated) if rotated else (),
        clean_fraction=_clean_fraction(blocks),
        clock_ratio=hot.ratio,
        between_process_variation=variation(hot.by_process_ns),
        faults_per_call=_faults(blocks),
        samples=hot.samples,
        processes=hot.processes,
        scheduling=worst_scheduling(found.blocks),
    )


def fold_network(
    trial: NetworkTrial, done: Done | None, found: TrialLabels | None, *, suite: str, environment_id: str
) -> NetworkMeasurement:
    """The row of a network trial that has a label, or that could not be measured; it includes the cost of the call."""
    row = partial(
        NetworkMeasurement,
        network=trial.network,
        family=trial.family,
        target=trial.target,
        graph_id=trial.graph_id,
        role=trial.role,
        batch=trial.batch,
        size=trial.size,
        suite=suite,
        environment_id=environment_id,
    )
    if done is not None and done.status not in USABLE:
        return row(status=done.status, reason=done.reason)
    assert found is not None
    label_, blocks = found.labels[NETWORK], found.of(NETWORK)
    return row(
        status=found.status,
        reason=reason_of(found.main.standard_error),
        latency_ns=label_.latency_ns,
        standard_error=label_.standard_error,
        host_ns=_median_of([block.enqueue_ns for block in blocks]),
        device_ns=_median_of([block.device_ns for block in blocks]),
        quantiles_ns=_quantiles(label_),
        peak_memory_bytes=max((block.peak_memory_bytes or 0 for block in blocks), default=0) or None,
        faults_per_call=_faults(blocks),
        clean_fraction=_clean_fraction(blocks),
        clock_ratio=label_.ratio,
        samples=label_.samples,
        processes=label_.processes,
        scheduling=worst_scheduling(blocks),
    )


def clean_samples(times: Sequence[float], flags: str) -> list[float]:
    """The samples flagged `1`, or all of them where none is."""
    clean = [ns for ns, flag in zip(times, flags, strict=True) if flag == "1"]
    return clean or list(times)


def worst_scheduling(blocks: Iterable[Scheduled]) -> str:
    """The scheduling of all blocks, or the least favourable one where they differ."""
    ways = {block.scheduling for block in blocks}
    return next((way for way in ("unfiltered", "contended", "normal", "fifo", "device") if way in ways), "normal")


def _quantiles(found: Label) -> tuple[float, ...]:
    return tuple(max(RESOLUTION_NS, ns) for ns in quantiles(found.told_ns, QUANTILES))


def _clean_fraction(blocks: Sequence[Block]) -> float:
    flags = "".join(block.clean for block in blocks)
    return flags.count("1") / len(flags)


def _enqueue_ns(blocks: Sequence[Block], overhead_ns: float) -> float:
    """The cost of one call on the host: for a device, the time to enqueue it."""
    found = _median_of([block.enqueue_ns for block in blocks])
    return overhead_ns if found is None else found


def _median_of(values: Sequence[float | None]) -> float | None:
    """The median of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _faults(blocks: Sequence[Block]) -> float:
    return median([block.faults_per_call for block in blocks])
