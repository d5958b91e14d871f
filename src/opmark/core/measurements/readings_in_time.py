"""Tell what the work before a reading does to it from what the moment does: an additive fit of both.

A run looks at networks at other moments than at kernels. A median of the readings after long work therefore mixes the
work with the speed of the machine at those moments; the fit compares readings with others of the same moment.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Readings of so many blocks make a moment, and a run has at most so many moments.
_BLOCKS = 24
_MOST_MOMENTS = 400
# The weight that draws works of neighbouring lengths together, that of no difference at all, and that between
# neighbouring moments, in trials.
_NEIGHBOURS = 4.0
_NO_DIFFERENCE = 1.0
_MOMENTS = 1.0
# A residual beyond this many deviations counts as much as one at this distance (Huber).
_HUBER = 1.5
# Readings beside one another differ by this much at least.
_LEAST_DEVIATION = 0.05
_ROUNDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The mean logarithm of the readings of one block after one `work`; `moment` orders the blocks in time."""

    moment: tuple[int, int]
    work: str
    trial: str
    log_ns: float


def effects_of_work(readings: Sequence[Reading], neighbours: Iterable[tuple[str, str, float]] = ()) -> dict[str, float]:
    """By how much each work lengthens a reading, in logarithms; only differences between works mean something.

    `neighbours` are pairs of works with their distance, which have similar effects. The effects of works and the levels
    of moments minimise a sum of Huber losses, to which all trials of a work contribute alike, and quadratic penalties.
    """
    ordered = sorted(readings, key=lambda reading: reading.moment)
    works = sorted({reading.work for reading in ordered})
    number = {work: index for index, work in enumerate(works)}
    work = np.array([number[reading.work] for reading in ordered])
    values = np.array([reading.log_ns for reading in ordered])
    values -= np.median(values)
    moment = np.arange(len(ordered)) // max(_BLOCKS, -(-len(ordered) // _MOST_MOMENTS))
    columns = (work, len(works) + moment)
    penalty = _penalty(len(works), int(moment[-1]) + 1, [(number[a], number[b], far) for a, b, far in neighbours])
    # Looks of one trial are no independent evidence of its work.
    base = _trials_per_block(ordered, number)[work]
    weight = base
    for _ in range(_ROUNDS):
        found = _solved(columns, values, weight, penalty)
        rest = np.abs(values - found[columns[0]] - found[columns[1]])
        deviation = max(1.4826 * float(np.median(rest)), _LEAST_DEVIATION)
        weight = base * np.minimum(1.0, _HUBER * deviation / np.maximum(rest, 1e-12))
    return {name: float(found[index]) for name, index in number.items()}


def _trials_per_block(readings: Sequence[Reading], number: Mapping[str, int]) -> Any:
    blocks = np.zeros(len(number))
    trials: dict[int, set[str]] = defaultdict(set)
    for reading in readings:
        blocks[number[reading.work]] += 1
        trials[number[reading.work]].add(reading.trial)
    return np.array([len(trials[index]) for index in range(len(number))]) / blocks


def _penalty(works: int, moments: int, neighbours: Iterable[tuple[int, int, float]]) -> Any:
    """The matrix of the quadratic penalties of all effects and levels."""
    matrix = np.zeros((works + moments, works + moments))
    matrix[range(works), range(works)] = _NO_DIFFERENCE
    pairs = [(a, b, _NEIGHBOURS / far) for a, b, far in neighbours]
    pairs += [(works + at, works + at + 1, _MOMENTS) for at in range(moments - 1)]
    for a, b, strength in pairs:
        matrix[[a, b], [a, b]] += strength
        matrix[[a, b], [b, a]] -= strength
    return matrix


def _solved(columns: tuple[Any, Any], values: Any, weight: Any, penalty: Any) -> Any:
    matrix, right = penalty.copy(), np.zeros(len(penalty))
    for one in columns:
        np.add.at(right, one, weight * values)
        for other in columns:
            np.add.at(matrix, (one, other), weight)
    return np.linalg.solve(matrix, right)
