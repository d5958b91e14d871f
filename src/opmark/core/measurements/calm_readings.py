"""The calm readings of the sentinels: those of a machine that nobody disturbs, by what ran before (decision 0035).

A machine returns to the calm state again and again, for milliseconds or for minutes, and always to the same one. So a
low quantile of the readings tells it. Long work takes a sentinel's lines out of the caches, and one untimed call does
not bring all of them back: on two virtual cores of an EPYC the copy takes 0.19 ms between short kernels and 0.33 ms
between networks, at the same moment. That is no state of the machine, so a reading is compared with those that followed
work of the same length (decision 0026), at the same moment (decision 0031).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np

from opmark.core.measurements.estimate import median
from opmark.core.measurements.looks import STOLEN
from opmark.core.measurements.readings_in_time import Reading, effects_of_work
from opmark.core.measurements.records import ROTATED, Block

# Two lengths of work a decade: between them the copy's reading changes by at most a quarter.
_A_DECADE = 2
_POWER = "after 10^"
# This share of a sentinel's readings counts as faster than the calm one: few, because a machine may be calm seldom. The
# copy follows all that happens in the shared caches, so its calm reading is no sharp edge.
_CALM_SHARE = {"compute": 0.05, "memory": 0.1}
_CALM_SHARE_OF_OTHERS = 0.1
# The sentinel that follows the core alone; readings this close to its calm one, in logarithms, were calm. A machine
# with so large a share of them is calm often.
_STEADY = "compute"
_ALIKE = 0.03
_OFTEN = 1 / 3
# The usual state of a machine that is seldom calm: the middle of its readings, but no slower than the fastest by more
# than this, in logarithms. The middle is another one every hour (decision 0068).
_USUAL = 0.2
# So many readings after one length of work tell their calm one as well as all others do.
_ENOUGH_READINGS = 100
# The deviation of normal deviates over the median of their distances from the middle.
_SPREAD = 1.4826


def calm_beside(calm: Mapping[str, float], name: str, block: Block) -> tuple[float, float]:
    """The calm readings of the sentinel `name` beside `block`: before all of its turns, and after one of them, in ns.

    Raises `KeyError` for a sentinel without a calm reading.
    """
    first, later = _keys(name, block)
    return calm.get(first, calm[name]), calm.get(later, calm[name])


def calm_keys(block: Block) -> dict[str, tuple[str, str]]:
    """The names of the calm readings beside `block`, by sentinel: of its first reading, and of the others."""
    return {name: _keys(name, block) for name in block.sentinels}


def calm_after(calm: Mapping[str, float], name: str, work_ns: float) -> float:
    """The calm reading of the sentinel `name` in ns after work of `work_ns`. Raises `KeyError` without any."""
    return calm.get(_after(name, work_ns), calm[name])


def after_like_work(readings: Mapping[str, float], calm: Mapping[str, float]) -> dict[str, float]:
    """The overall reading of each sentinel, as if the work before it had had the lengths behind `calm`, in ns.

    Both are what `calm_readings` gives. The median over the lengths in both of them decides; without such lengths, the
    overall readings stay as they are.
    """
    logs: dict[str, list[float]] = defaultdict(list)
    for key, ns in readings.items():
        name, _, work = key.partition(" ")
        if work and key in calm:
            logs[name].append(math.log(ns / calm[key]))
    names = [key for key in readings if " " not in key]
    return {name: calm[name] * math.exp(median(logs[name])) if name in logs else readings[name] for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readings:
    """Readings `alone` by sentinel; the `counts` of those beside work, their `logs`, and the `effects` of the work."""

    alone: Mapping[str, Sequence[float]]
    counts: Mapping[str, Counter[str]]
    logs: Mapping[tuple[str, str], Sequence[float]]
    effects: Mapping[str, Mapping[str, float]]


def calm_readings(blocks: Iterable[Block], others: Iterable[tuple[str, float]] = ()) -> dict[str, float]:
    """The calm reading of each sentinel in ns, by its name and by its name and length of the work before it.

    Those of a machine that is seldom calm are the usual ones: the middle of all readings, but not far from the fastest.
    `others` are readings, with names, that stand beside no block. They cannot show calm samples, so they alone give
    their median. Readings after work of different lengths are those of one moment: a run looks at networks when the
    machine is faster or slower than beside most kernels.
    """
    return calm_and_fastest_readings(blocks, others)[0]


def calm_and_fastest_readings(
    blocks: Iterable[Block], others: Iterable[tuple[str, float]] = ()
) -> tuple[dict[str, float], dict[str, float]]:
    """The calm readings, and the fastest: those that would be calm if the machine was so often.

    A machine that neighbours disturb for an hour is still the same machine: its few fastest readings show it.
    """
    readings = _readings(blocks, others)
    fastest = _fastest(readings)
    often = _calm_share(readings.logs, fastest) >= _OFTEN
    return fastest if often else _usual(readings, fastest), fastest


def _readings(blocks: Iterable[Block], others: Iterable[tuple[str, float]]) -> _Readings:
    alone: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    found: dict[str, list[Reading]] = defaultdict(list)
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, ns in others:
        alone[name].append(ns)
    for block in blocks:
        moment = (-1 if block.at_s is None else block.at_s, block.round)
        for name, readings in block.sentinels.items():
            first, later = _keys(name, block)
            for work, part in ((first, readings[:1]), (later, readings[1:])):
                if part:
                    counts[name][work] += len(part)
                    found[name].append(Reading(moment=moment, work=work, trial=block.trial, log_ns=_level(part)))
                    logs[name, work] += map(math.log, part)
    effects = {name: effects_of_work(own, _neighbours(counts[name])) for name, own in found.items()}
    return _Readings(alone=alone, counts=counts, logs=logs, effects=effects)


def _fastest(readings: _Readings) -> dict[str, float]:
    calm = {name: median(own) for name, own in readings.alone.items()}
    for name, effects in readings.effects.items():
        calm |= _calm(name, {work: readings.logs[name, work] for work in readings.counts[name]}, effects)
    return calm


def _usual(readings: _Readings, calm: Mapping[str, float]) -> dict[str, float]:
    usual = dict(calm)
    for name, effects in readings.effects.items():
        counts = readings.counts[name]
        every = [ns for work in counts for ns in map(math.exp, readings.logs[name, work])]
        usually = sum(effects[work] * count for work, count in counts.items()) / counts.total()
        level = _level(every) - usually
        slower = sum((level + effects[work] - math.log(calm[work])) * counts[work] for work in effects) / counts.total()
        if slower > _USUAL:
            usual |= {key: calm[key] * math.exp(_USUAL) for key in (name, *effects)}
            continue
        usual[name] = median([*every, *readings.alone.get(name, ())])
        usual |= {work: math.exp(level + effect) for work, effect in effects.items()}
    return usual


def is_calm(blocks: Iterable[Block], readings: Mapping[str, float]) -> bool:
    """Return True if `readings` are those of a calm machine, which many of those beside `blocks` equal."""
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for block in blocks:
        for name, own in block.sentinels.items():
            first, later = _keys(name, block)
            for work, part in ((first, own[:1]), (later, own[1:])):
                logs[name, work] += map(math.log, part)
    return _calm_share(logs, readings) >= _OFTEN


def _calm_share(logs: Mapping[tuple[str, str], Sequence[float]], calm: Mapping[str, float]) -> float:
    """The share of the compute sentinel's readings that equal those in `calm`; 0 without any."""
    off = [
        np.array(own) - math.log(calm.get(work, calm[name]))
        for (name, work), own in logs.items()
        if name == _STEADY and name in calm
    ]
    return float(np.mean(np.abs(np.concatenate(off)) <= _ALIKE)) if off else 0.0


def _calm(name: str, logs: Mapping[str, Sequence[float]], effects: Mapping[str, float]) -> dict[str, float]:
    share = _CALM_SHARE.get(name, _CALM_SHARE_OF_OTHERS)
    overall = math.exp(float(np.quantile(np.concatenate([logs[work] for work in effects]), share)))
    own = {work: float(np.quantile(logs[work], share)) for work in effects}
    # Works that few readings follow are told by the others, and by what the work adds to all readings after it.
    level = sum((own[work] - effects[work]) * len(logs[work]) for work in effects) / sum(map(len, logs.values()))
    calm = {name: overall}
    for work, effect in effects.items():
        known = len(logs[work]) / (len(logs[work]) + _ENOUGH_READINGS)
        calm[work] = math.exp(known * own[work] + (1 - known) * (level + effect))
    return calm


def _neighbours(works: Iterable[str]) -> list[tuple[str, str, float]]:
    """Pairs of works with the nearest lengths and the same contents of the caches, and their distance in classes."""
    lengths: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for work in works:
        before, power, after = work.partition(_POWER)
        if power:
            length, _, contents = after.partition(" ns")
            lengths[before + contents].append((float(length), work))
    return [
        (a, b, (longer - shorter) * _A_DECADE)
        for chain in lengths.values()
        for (shorter, a), (longer, b) in pairwise(sorted(chain))
    ]


def deviations_of_readings(blocks: Iterable[Block]) -> dict[str, float]:
    """The robust deviation of each sentinel's readings in one run, as a fraction; empty without readings.

    The larger one of two counts: that beside one block, as the machine's speed changes within seconds, and that between
    the blocks of work of one length, for neighbours use the memory for minutes.
    """
    within: dict[str, list[float]] = defaultdict(list)
    levels: dict[tuple[str, str], list[float]] = defaultdict(list)
    for block in blocks:
        for name, readings in block.sentinels.items():
            logs = np.log(np.asarray(readings[1:], dtype=float))
            if not len(logs):
                continue
            middle = float(np.median(logs))
            levels[name, _keys(name, block)[1]].append(middle)
            if len(logs) > 1:
                within[name].append(_SPREAD * float(np.median(np.abs(logs - middle))))
    between: dict[str, list[float]] = defaultdict(list)
    for (name, _), own in levels.items():
        middle = median(own)
        between[name] += [_SPREAD * abs(level - middle) for level in own]
    return {name: max(median(own), median(within[name] or [0.0])) for name, own in between.items()}


def _level(readings: Sequence[float]) -> float:
    """The mean logarithm without stolen moments: medians jump where a machine has two speeds."""
    logs = [math.log(ns) for ns in readings]
    middle = median(logs)
    # between two speeds far from each other, the median may have no reading near it
    return fmean([one for one in logs if one - middle <= STOLEN] or [middle])


def _keys(name: str, block: Block) -> tuple[str, str]:
    """The sentinel with the work before it: none, or its order of magnitude; and the caches' contents."""
    contents = " rotated" if block.label == ROTATED else ""
    turn_ns = median(block.ns) * block.calls if block.ns else 1.0
    return f"{name} first{contents}", f"{_after(name, turn_ns)}{contents}"


def _after(name: str, work_ns: float) -> str:
    length = math.floor(_A_DECADE * math.log10(max(work_ns, 1.0))) / _A_DECADE
    return f"{name} {_POWER}{length:g} ns"
