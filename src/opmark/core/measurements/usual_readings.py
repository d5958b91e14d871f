"""The usual readings of the sentinels: those of the machine in its usual state, by what ran before (decision 0026).

Long work takes a sentinel's lines out of the caches, and one untimed call does not bring all of them back. On two
virtual cores of an EPYC the copy takes 0.19 ms between short kernels and 0.33 ms between networks, at the same moment.
That is no state of the machine, so a reading is compared with those that followed work of the same length, at the same
moment (decision 0031).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from opmark.core.measurements.estimate import median
from opmark.core.measurements.labelling import STOLEN
from opmark.core.measurements.readings_in_time import Reading, effects_of_work
from opmark.core.measurements.records import ROTATED, Block

# Two lengths of work a decade: between them the copy's reading changes by at most a quarter.
_A_DECADE = 2
_POWER = "after 10^"


def usual_beside(usual: Mapping[str, float], name: str, block: Block) -> tuple[float, float]:
    """The usual readings of the sentinel `name` beside `block`: before all of its turns, and after one of them, in ns.

    Raises `KeyError` for a sentinel without a usual reading.
    """
    first, later = _keys(name, block)
    return usual.get(first, usual[name]), usual.get(later, usual[name])


def usual_keys(block: Block) -> dict[str, tuple[str, str]]:
    """The names of the usual readings beside `block`, by sentinel: of its first reading, and of the others."""
    return {name: _keys(name, block) for name in block.sentinels}


def usual_after(usual: Mapping[str, float], name: str, work_ns: float) -> float:
    """The usual reading of the sentinel `name` in ns after work of `work_ns`. Raises `KeyError` without any."""
    return usual.get(_after(name, work_ns), usual[name])


def at_usual_work(readings: Mapping[str, float], usual: Mapping[str, float]) -> dict[str, float]:
    """The overall reading of each sentinel, as if the work before it had had the lengths behind `usual`, in ns.

    Both are what `usual_readings` gives. The median over the lengths in both of them decides; without such lengths, the
    overall readings stay as they are.
    """
    logs: dict[str, list[float]] = defaultdict(list)
    for key, ns in readings.items():
        name, _, work = key.partition(" ")
        if work and key in usual:
            logs[name].append(math.log(ns / usual[key]))
    names = [key for key in readings if " " not in key]
    return {name: usual[name] * math.exp(median(logs[name])) if name in logs else readings[name] for name in names}


def usual_readings(blocks: Iterable[Block], others: Iterable[tuple[str, float]] = ()) -> dict[str, float]:
    """The median of each sentinel's readings in ns by its name, and the usual reading by name and length of the work.

    `others` are readings, with names, that stand beside no block. Usual readings after work of different lengths are
    those of one moment: a run looks at networks when the machine is faster or slower than beside most kernels.
    """
    every: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    found: dict[str, list[Reading]] = defaultdict(list)
    for name, ns in others:
        every[name].append(ns)
    for block in blocks:
        moment = (-1 if block.at_s is None else block.at_s, block.round)
        for name, readings in block.sentinels.items():
            every[name] += readings
            first, later = _keys(name, block)
            for work, part in ((first, readings[:1]), (later, readings[1:])):
                if part:
                    counts[name][work] += len(part)
                    found[name].append(Reading(moment=moment, work=work, trial=block.trial, log_ns=_level(part)))
    usual = {name: median(readings) for name, readings in every.items()}
    for name, readings_of in found.items():
        effects = effects_of_work(readings_of, _neighbours(counts[name]))
        usually = sum(effects[work] * count for work, count in counts[name].items()) / counts[name].total()
        level = _level(every[name]) - usually
        usual |= {work: math.exp(level + effect) for work, effect in effects.items()}
    return usual


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


def deviation_of_readings(blocks: Iterable[Block]) -> float:
    """The robust deviation of the readings beside one block, as a fraction: the largest of the sentinels' medians.

    It tells how much the machine's speed changes within seconds; 0 without readings.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for block in blocks:
        for name, readings in block.sentinels.items():
            logs = np.log(np.asarray(readings[1:], dtype=float))
            if len(logs) > 1:
                found[name].append(1.4826 * float(np.median(np.abs(logs - np.median(logs)))))
    return max((median(deviations) for deviations in found.values()), default=0.0)


def _level(readings: Sequence[float]) -> float:
    """The mean logarithm without stolen moments: medians jump where a machine has two speeds."""
    logs = [math.log(ns) for ns in readings]
    middle = median(logs)
    # between two speeds far from each other, the median may have no reading near it
    return fmean([one for one in logs if abs(one - middle) <= STOLEN] or [middle])


def _keys(name: str, block: Block) -> tuple[str, str]:
    """The sentinel with the work before it: none, or its order of magnitude; and the caches' contents."""
    contents = " rotated" if block.label == ROTATED else ""
    turn_ns = median(block.ns) * block.calls if block.ns else 1.0
    return f"{name} first{contents}", f"{_after(name, turn_ns)}{contents}"


def _after(name: str, work_ns: float) -> str:
    length = math.floor(_A_DECADE * math.log10(max(work_ns, 1.0))) / _A_DECADE
    return f"{name} {_POWER}{length:g} ns"
