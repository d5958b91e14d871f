"""Labels of all journals at one level of the memory: that of calm hours (decision 0074).

Neighbours who use the memory for hours slow down whatever works beyond the caches, and every reading of the memory
sentinel after long work. One journal cannot tell such an hour from a slower machine: its labels are those of the
calmest moments that it met. Several journals can.

1. The level of a journal is by how much longer its calm readings are than those of other journals after the same work.
2. The effect of the level on a kernel comes from kernels that several journals measured, and depends on the bytes that
   a call moves and on their rate. Few such kernels draw it only a little from what is expected.
3. Labels are told at the level of the calmest tenth of the journals.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opmark.core.measurements.calm_readings import is_calm
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import Journal
from opmark.core.measurements.looks import huber_weights, means
from opmark.core.measurements.measurement import (
    USABLE,
    Measurement,
    NetworkMeasurement,
    reason_of,
    status_of,
)
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, Block, KernelTrial

Told = tuple[tuple[Measurement, ...], tuple[NetworkMeasurement, ...]]
"""The rows of one journal: of its kernels, and of its networks."""
_Cell = tuple[Any, ...]

_SENTINEL = "memory"
# Work of a millisecond and more; shorter work leaves the sentinel's lines in the caches.
_LONG_NS = 1e6
# This share of readings is faster than the calm one, and this share of journals calmer than labels are told at.
_CALM_SHARE = 0.1
# Two lengths of work a decade, and classes of the bytes that a call moves.
_A_DECADE = 2
_LONGEST = 16
_SIZES = (1e6, 4e6, 16e6, 64e6)
# Effects are told at these bytes, and at these bytes per ns, and are linear in the logarithms of both between them.
_BYTES = (0.1e6, 0.5e6, 1.4e6, 2.8e6, 5.6e6, 11e6, 22e6, 45e6, 90e6)
_RATES = (0.5, 2.0, 4.5, 8.0, 15.0, 30.0)
# Fewer readings tell no calm one, and so many tell it as well as all others do.
_FEWEST_READINGS = 20
_ENOUGH_READINGS = 200
# The level of a journal with so many readings is drawn half-way towards no difference.
_NO_DIFFERENCE = 10.0
# At this rate, half of the time goes into memory; less of it for tensors that are in the caches from one call to the
# next: all of the first size, none of the last.
_HALF_RATE = 15.0
_FIRST_BYTES, _LAST_BYTES = 4e6, 16e6
_LEAST_EFFECT = 0.03
_EFFECT_ON_NETWORKS = 0.15
# The deviation of effects from what is expected, and that of labels from each other beside their errors.
_EFFECT_DEVIATION = 0.15
_LABEL_DEVIATION = 0.02
# Labels of like kernels or networks are no independent evidence: so many of them count as one.
_SHARED_EVIDENCE = {HOT: 25.0, ROTATED: 25.0, NETWORK: 4.0}
_ROUNDS = 6
# Levels are known this well: 5-minute parts of one journal differ by as much.
_LEVEL_ERROR = 0.05


def at_calm_memory(journals: Sequence[Journal]) -> list[Told]:
    """The rows of every journal, at the calm level of all `journals`; those of one journal stay as they are.

    Machines that are seldom calm have labels at their usual state, which stay as well.
    """
    told = [(journal.measurements, journal.networks) for journal in journals]
    levels = _levels(journals)
    if not levels:
        return told
    labels: dict[tuple[str, str], list[_Known]] = defaultdict(list)
    for number, rows in enumerate(told):
        for label in _labels_of(rows, number, levels):
            labels[label.target, label.label].append(label)
    effects = {key: _effects(found, key[1]) for key, found in labels.items()}
    return [
        (
            tuple(_kernel_at(row, number, levels, effects) for row in kernels),
            tuple(_network_at(row, number, levels, effects) for row in networks),
        )
        for number, (kernels, networks) in enumerate(told)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The logarithm of one label of `subject` in ns, with its error, its place between effects, and its level."""

    target: str
    label: str
    subject: Hashable
    place: Any
    log_ns: float
    error: float
    level: float


_Levels = Mapping[tuple[int, str, str], float]
"""By how much the memory of a journal, given by number, is slower on a target beside a label, in logarithms."""
_Effects = Mapping[tuple[str, str], Any]
"""The effects of a level on the labels of a target, by target and label, one per place."""


def _levels(journals: Sequence[Journal]) -> dict[tuple[int, str, str], float]:
    """The levels of all journals that have calm labels, relative to the calmest tenth; empty for fewer than two."""
    found: dict[tuple[str, str], dict[tuple[int, _Cell], tuple[float, int]]] = defaultdict(dict)
    for number, journal in enumerate(journals):
        for (target, label, *cell), readings in _readings(journal).items():
            if len(readings) >= _FEWEST_READINGS:
                calm = float(np.quantile(np.log(readings), _CALM_SHARE))
                found[target, label][number, tuple(cell)] = (calm, len(readings))
    levels: dict[tuple[int, str, str], float] = {}
    for (target, label), calm_logs in found.items():
        own = _additive(calm_logs)
        if len(own) > 1:
            calmest = float(np.quantile(list(own.values()), _CALM_SHARE))
            levels |= {(number, target, label): level - calmest for number, level in own.items()}
    return levels


def _readings(journal: Journal) -> dict[_Cell, list[float]]:
    """The memory readings after long work at kernels in ns, by target, label, length of the work and its bytes."""
    found: dict[_Cell, list[float]] = defaultdict(list)
    told_at = journal.calm_ns if journal.reference is None else journal.reference
    own: dict[str, list[Block]] = defaultdict(list)
    for key, blocks in journal.blocks.items():
        own[journal.trials[key].target] += blocks
    calm = {target for target, blocks in own.items() if is_calm(blocks, told_at.get(target, {}))}
    for key, blocks in journal.blocks.items():
        trial = journal.trials[key]
        if isinstance(trial, KernelTrial) and trial.target in calm:
            size = sum(trial.work.moved_bytes >= bound for bound in _SIZES)
            for block in blocks:
                turn_ns = median(block.ns) * block.calls if block.ns else 0.0
                if turn_ns >= _LONG_NS:
                    length = min(math.floor(_A_DECADE * math.log10(turn_ns)), _LONGEST)
                    found[trial.target, block.label, length, size] += block.sentinels.get(_SENTINEL, ())[1:]
    return found


def _additive(calm_logs: Mapping[tuple[int, _Cell], tuple[float, int]]) -> dict[int, float]:
    """The level of every journal: its calm readings are those of the work before them, and its level.

    Least squares, in which a calm reading counts by how many readings tell it.
    """
    numbers = sorted({number for number, _ in calm_logs})
    cells = sorted({cell for _, cell in calm_logs})
    of = np.array([numbers.index(number) for number, _ in calm_logs])
    after = np.array([len(numbers) + cells.index(cell) for _, cell in calm_logs])
    values = np.array([calm for calm, _ in calm_logs.values()])
    weight = np.array([1 / (1 / count + 1 / _ENOUGH_READINGS) for _, count in calm_logs.values()])
    square = np.diag([_NO_DIFFERENCE] * len(numbers) + [1e-9] * len(cells))
    product = np.zeros(len(square))
    middle = float(np.median(values))
    for column in (of, after):
        np.add.at(product, column, weight * (values - middle))
        for other in (of, after):
            np.add.at(square, (column, other), weight)
    found = np.linalg.solve(square, product)
    return {number: float(found[index]) for index, number in enumerate(numbers)}


def _labels_of(rows: Told, number: int, levels: _Levels) -> Iterable[_Known]:
    kernels, networks = rows
    for row in kernels:
        for label in (HOT, ROTATED):
            ns, error = getattr(row, f"latency_{label}_ns"), getattr(row, f"standard_error_{label}")
            level = levels.get((number, row.target, label))
            if row.status in USABLE and ns and error and level is not None:
                yield _Known(
                    target=row.target,
                    label=label,
                    subject=row.kernel.key,
                    place=_place(row, ns),
                    log_ns=math.log(ns),
                    error=error,
                    level=level,
                )
    for network in networks:
        level = levels.get((number, network.target, HOT))
        if network.status in USABLE and network.latency_ns and network.standard_error and level is not None:
            yield _Known(
                target=network.target,
                label=NETWORK,
                subject=(network.graph_id, network.batch),
                place=np.ones(1),
                log_ns=math.log(network.latency_ns),
                error=network.standard_error,
                level=level,
            )


def _place(row: Measurement, ns: float) -> Any:
    """The weight of every effect in that on `row`, one per pair of bytes and rate; they add up to one."""
    moved = max(row.work.moved_bytes, 1)
    return np.outer(_between(moved, _BYTES), _between(moved / ns, _RATES)).ravel()


def _between(value: float, nodes: Sequence[float]) -> Any:
    """The weights of `nodes` in a value that is linear in the logarithm between them."""
    weights = np.zeros(len(nodes))
    inside = min(max(value, nodes[0]), nodes[-1])
    above = min(bisect_right(nodes, inside), len(nodes) - 1)
    weights[above] = math.log(inside / nodes[above - 1]) / math.log(nodes[above] / nodes[above - 1])
    weights[above - 1] = 1.0 - weights[above]
    return weights


def _expected(label: str) -> Any:
    """The effects to expect: a share of the time goes into memory, and less of it for tensors in the caches."""
    if label == NETWORK:
        return np.array([_EFFECT_ON_NETWORKS])
    rates, moved = np.array(_RATES), np.array(_BYTES)
    share = np.tile(rates / (rates + _HALF_RATE), (len(moved), 1))
    if label == HOT:
        beyond = np.clip(np.log(moved / _FIRST_BYTES) / math.log(_LAST_BYTES / _FIRST_BYTES), 0.0, 1.0)[:, None]
        share = _LEAST_EFFECT + beyond * np.maximum(share - _LEAST_EFFECT, 0.0)
    return share.ravel()


def _effects(labels: Sequence[_Known], label: str) -> Any:
    """The effects of the level: a regression of labels on levels, every subject around its own mean.

    They are drawn towards the expected ones (ridge), and a label far from the others counts less (Huber).
    """
    expected = _expected(label)
    subjects: dict[Hashable, int] = {}
    subject = np.array([subjects.setdefault(one.subject, len(subjects)) for one in labels])
    places = np.stack([one.place * one.level for one in labels])
    values = np.array([one.log_ns for one in labels])
    error = np.sqrt(np.array([one.error for one in labels]) ** 2 + _LABEL_DEVIATION**2)
    weight = 1 / error**2
    penalty = _SHARED_EVIDENCE[label] / _EFFECT_DEVIATION**2
    effects = expected
    for _ in range(_ROUNDS):
        x = np.stack([_centred(column, subject, weight) for column in places.T], axis=1)
        y = _centred(values, subject, weight)
        square = (x * weight[:, None]).T @ x + penalty * np.eye(len(expected))
        effects = np.linalg.solve(square, x.T @ (weight * y) + penalty * expected)
        rest = np.abs(y - x @ effects) / error
        weight = huber_weights(rest) / error**2
    return effects


def _centred(values: Any, index: Any, weight: Any) -> Any:
    return values - means(values, index, weight)[index]


def _kernel_at(row: Measurement, number: int, levels: _Levels, effects: _Effects) -> Measurement:
    if row.status not in USABLE:
        return row
    changed: dict[str, Any] = {}
    for label in (HOT, ROTATED):
        ns, error = getattr(row, f"latency_{label}_ns"), getattr(row, f"standard_error_{label}")
        level = levels.get((number, row.target, label))
        if ns and error and level is not None:
            effect = float(_place(row, ns) @ effects[row.target, label])
            factor = math.exp(-effect * level)
            changed |= {
                f"latency_{label}_ns": ns * factor,
                f"standard_error_{label}": math.hypot(error, effect * _LEVEL_ERROR),
                f"{label}_quantiles_ns": tuple(one * factor for one in getattr(row, f"{label}_quantiles_ns")),
            }
            if label == HOT:
                changed |= _state(changed["standard_error_hot"], row.clock_ratio, factor)
    return replace(row, **changed)


def _network_at(row: NetworkMeasurement, number: int, levels: _Levels, effects: _Effects) -> NetworkMeasurement:
    level = levels.get((number, row.target, HOT))
    if row.status not in USABLE or not row.latency_ns or not row.standard_error or level is None:
        return row
    effect = float(effects[row.target, NETWORK][0])
    factor = math.exp(-effect * level)
    error = math.hypot(row.standard_error, effect * _LEVEL_ERROR)
    return replace(
        row,
        latency_ns=row.latency_ns * factor,
        standard_error=error,
        quantiles_ns=tuple(one * factor for one in row.quantiles_ns),
        **_state(error, row.clock_ratio, factor),
    )


def _state(error: float, clock_ratio: float | None, factor: float) -> dict[str, Any]:
    """The fields that follow from the error of a main label, and from a `factor` on it."""
    return {
        "status": status_of(error),
        "reason": reason_of(error),
        "clock_ratio": clock_ratio and clock_ratio / factor,
    }
