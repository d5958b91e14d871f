"""The variance of a label's processes: from their differences, those of the group, and those of halves (decision 0065).

Three steps lead to it.

1. A process that counts little in the label counts as little in its variance.
2. Few differences tell their variance roughly, so it is moderated by that of the group (Smyth, Statistical Applications
   in Genetics and Molecular Biology 2004, section 4).
3. Labels of one half of a trial's processes are compared with those of the other half. The variance grows until nine of
   ten differences lie within 1.645 of their standard errors. Halves of one, two and four processes tell it for labels
   of few and of many: one process can be unlucky unseen, of four the unlucky one counts little.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.core.measurements.looks import LEAST_DEVIATION, means, weighted_medians

Weigh = Callable[[Any, Any], Any]
"""The weights of chosen processes, given by number, in the labels that their indices name."""

# Degrees of freedom of the group's variance in that of one trial, and of both together for a trial of one process.
_GROUP_FREEDOM = 2.0
_LEAST_TOGETHER = 4.0
# Trials of a group that the variance of all trials counts for, and pairs of halves that their growth must outweigh.
_GROUP_STRENGTH = 8.0
# This share of the distance between a label and the median of its processes is in its error.
_FROM_MEDIAN = 0.5
# The processes of a half.
_HALVES = (1, 2, 4)
# Processes that together count as fewer than one and this much tell no variance.
_LEAST_FREEDOM = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """One number per process of a trial, the `value`, a logarithm; `calmness` and `trial` of each; `group` by trial.

    Processes of one trial stand next to each other. Labels at the usual state count all processes as calm.
    """

    value: Any
    calmness: Any
    trial: Any
    group: Any

    def squares(self, chosen: Any, index: Any, weight: Any) -> tuple[Any, Any]:
        """The weighted squares of `chosen` processes around the mean of their `index`, and their degrees of freedom."""
        value = self.value[chosen]
        freedom = np.bincount(index, weight / self.calmness[chosen]) - 1
        several = (freedom > _LEAST_FREEDOM) & (np.bincount(index) > 1)
        squares = np.bincount(index, weight * (value - means(value, index, weight)[index]) ** 2)
        return np.where(several, squares, 0.0), np.where(several, freedom, 0.0)


def process_variances(found: Processes, weigh: Weigh, *, alone: float) -> Any:
    """The variance between calm processes by trial; `alone` is their deviation where none can be compared."""
    everything = np.arange(len(found.trial))
    squares, freedom = found.squares(everything, found.trial, weigh(everything, found.trial))
    if not freedom.any():
        return np.full(len(freedom), alone**2)
    of_group = np.maximum(_of_groups(squares, freedom, found.group), LEAST_DEVIATION**2)[found.group]
    count = np.bincount(found.trial)
    growth = np.array(_growth(found, weigh, of_group))[np.searchsorted(_HALVES, count, side="right") - 1]
    return np.maximum(growth * _moderated(squares, freedom, of_group), LEAST_DEVIATION**2)


def from_median(value: Any, index: Any, calmness: Any, told: Any) -> Any:
    """The error of labels `told` far from the median: those of the fastest few depend on how many there are.

    A process counts in the median by its calmness: a restless one is slower for reasons of its own (decision 0071).
    """
    return _FROM_MEDIAN * (weighted_medians(value, index, calmness) - told)


def weigh_alike(_chosen: Any, index: Any) -> Any:
    """Weights of processes that all count alike."""
    return np.ones(len(index))


def student(processes: Any) -> Any:
    """By how much errors of few processes grow, so that 1.645 of them hold nine of ten (Student, to first order)."""
    return 1 + 0.93 / (_LEAST_TOGETHER + processes - 1)


def _moderated(squares: Any, freedom: Any, of_group: Any) -> Any:
    return (_GROUP_FREEDOM * of_group + squares) / (_GROUP_FREEDOM + freedom)


def _of_groups(squares: Any, freedom: Any, group: Any) -> Any:
    """The typical variance of every group, drawn towards that of all."""
    several = freedom > 0
    own = squares[several] / freedom[several]
    everyone = _typical(own, freedom[several])
    found = np.full(group.max() + 1, everyone)
    for number in np.unique(group[several]):
        chosen = group[several] == number
        typical = _typical(own[chosen], freedom[several][chosen])
        found[number] = (chosen.sum() * typical + _GROUP_STRENGTH * everyone) / (chosen.sum() + _GROUP_STRENGTH)
    return found


def _typical(variances: Any, freedom: Any) -> float:
    """A mean of variances in which no trial counts more than nine times the median."""
    most = 9.0 * np.median(variances)
    return float(np.average(np.minimum(variances, most) if most > 0 else variances, weights=freedom))


def _growth(found: Processes, weigh: Weigh, of_group: Any) -> list[float]:
    """By which factor variances must grow for labels of one, of two and three, and of four processes or more.

    Few pairs of halves keep the growth of smaller halves, of which there are more.
    """
    place = np.arange(len(found.trial)) - np.flatnonzero(np.diff(found.trial, prepend=-1))[found.trial]
    count = np.bincount(found.trial)[found.trial]
    growth, known = [], 1.0
    for size in _HALVES:
        chosen = np.flatnonzero((count >= 2 * size) & (place < 2 * size))
        if len(chosen):
            # Every other process is of the second half.
            halves = 2 * found.trial[chosen] + place[chosen] % 2
            order = np.argsort(halves, kind="stable")
            off = _off(found, weigh, of_group, chosen[order], halves[order])
            needed = max(1.0, float(np.quantile(off, 0.9, method="lower")) / 1.645) ** 2
            known += (needed - known) * len(off) / (len(off) + _GROUP_STRENGTH)
        growth.append(known)
    return growth


def _off(found: Processes, weigh: Weigh, of_group: Any, chosen: Any, halves: Any) -> Any:
    """The differences between both halves of every trial, in standard errors."""
    names, index = np.unique(halves, return_inverse=True)
    weight = weigh(chosen, index)
    squares, freedom = found.squares(chosen, index, weight)
    variance = np.maximum(_moderated(squares, freedom, of_group[names // 2]), LEAST_DEVIATION**2)
    told = means(found.value[chosen], index, weight)
    error = student(np.bincount(index)) ** 2 * variance / np.bincount(index, weight)
    error += from_median(found.value[chosen], index, found.calmness[chosen], told) ** 2
    return np.abs(told[1::2] - told[::2]) / np.sqrt(error[1::2] + error[::2])
