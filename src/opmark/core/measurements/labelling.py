"""Estimate labels at the machine's usual state, with their standard errors (decision 0022).

A *look* is one visit to a kernel or network in one process: samples in turns, and beside every turn the state of the
machine. The state is the logarithm of each sentinel's reading over its usual one. Three steps lead to a label:

1. A robust regression gives the effect of the state on each kernel. Few samples of one kernel cannot tell this effect,
   so it is drawn towards the effect on its group (kernels of its kind), and that towards the effect on all.
2. Every look becomes one number, the robust mean of its samples at the usual state.
3. The label is the mean over processes. Its standard error comes from the differences between processes, moderated by
   those of the group (Smyth, Statistical Applications in Genetics and Molecular Biology 2004, section 4).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)

STATES = ("compute", "memory")
# Effects of the state differ between kernels by about this much.
_EFFECT_DEVIATION = 0.15
# The effect of a lasting change before anything was measured: most of compute, some of memory, together all of it. A
# kernel whose tensors are in the caches follows compute alone, and more than the sentinel does (decision 0031).
LASTING_EFFECT = (0.7, 0.3)
HOT_EFFECT = (1.0, 0.1)
# A reading this far from the others of its look, in logarithms, was interrupted.
STOLEN = 0.7
# The deviation of lasting states before any was read, and the number of looks that it counts for.
_STATE_DEVIATION = 0.15
_STATE_LOOKS = 8.0
# A residual beyond this many deviations counts as much as one at this distance (Huber).
_HUBER = 1.5
_ROUNDS = 3
# Degrees of freedom of the group's variance between processes in that of one kernel.
_GROUP_FREEDOM = 4.0
# Kernels of a group that the variance of all kernels counts for.
_GROUP_STRENGTH = 8.0
# Between processes where no kernel was measured in two of them.
_UNKNOWN_BETWEEN = 0.03
# A shorter time is noise of the clock.
_RESOLUTION_NS = 1.0
# No label is known better: the samples of one look share what a sentinel cannot see.
_LEAST_DEVIATION = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Samples of one block in ns, and the state beside each, one row of `len(STATES)` numbers per sample.

    Without a known state, the rows are zero. `unrest` are the variances of single readings within the look, one per
    state, and `readings` is their number; without them, the state counts as known exactly.
    """

    process: int
    ns: Sequence[float]
    state: Any
    readings: int = 0
    unrest: tuple[float, ...] = (0.0,) * len(STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A latency at the usual state in ns, with its standard error as a fraction of it.

    `effects` tell by which share of a change of each sentinel the latency changes, and `ratio` how many times longer
    the samples took than at the usual state. `between` is the deviation between processes, as a fraction.
    `by_process_ns` is the label of each process alone, and `told_ns` are the samples, all at the usual state.
    """

    latency_ns: float
    standard_error: float
    effects: tuple[float, ...]
    ratio: float
    between: float
    by_process_ns: tuple[float, ...]
    told_ns: tuple[float, ...]

    @property
    def processes(self) -> int:
        """The number of processes."""
        return len(self.by_process_ns)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.told_ns)


def labels_of(
    looks: Mapping[K, Sequence[Look]],
    groups: Mapping[K, str] | None = None,
    *,
    lasting: tuple[float, ...] = LASTING_EFFECT,
) -> dict[K, Label]:
    """The label of every key with looks; kernels of one group (their kind) help each other.

    `lasting` is the effect of a lasting change of each state before anything was measured.
    """
    keys = [key for key, found in looks.items() if found]
    if not keys:
        return {}
    table = _Samples.of([looks[key] for key in keys], [(groups or {}).get(key, "") for key in keys])
    return dict(zip(keys, _labels(table, np.array(lasting)), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Samples:
    """All samples in one table; `look` of each sample, `trial` and `process` of each look, `group` of each trial.

    `readings` and `unrest` are those of each look.
    """

    log_ns: Any
    state: Any
    look: Any
    trial: Any
    process: Any
    group: Any
    readings: Any
    unrest: Any

    @classmethod
    def of(cls, found: Sequence[Sequence[Look]], groups: Sequence[str]) -> "_Samples":
        flat = [(number, look) for number, looks in enumerate(found) for look in looks]
        names = sorted(set(groups))
        return cls(
            log_ns=np.log(np.concatenate([np.asarray(look.ns, dtype=float) for _, look in flat])),
            state=np.concatenate([np.asarray(look.state, dtype=float).reshape(-1, len(STATES)) for _, look in flat]),
            look=np.repeat(np.arange(len(flat)), [len(look.ns) for _, look in flat]),
            trial=np.array([number for number, _ in flat]),
            process=np.array([look.process for _, look in flat]),
            group=np.array([names.index(name) for name in groups]),
            readings=np.array([look.readings for _, look in flat], dtype=float),
            unrest=np.array([look.unrest for _, look in flat]),
        )


def _looks(table: _Samples) -> tuple[Any, Any]:
    """One number per look, the mean of its logarithms, and the mean state beside these samples.

    Means follow a machine that jumps between two speeds better than medians. Samples far from the middle of their look
    count less (Huber), and those beside a stolen moment not at all: such a reading says nothing about its sample.
    """
    middle = _medians(table.log_ns, table.look)
    usual = np.stack([_medians(column, table.look) for column in table.state.T], axis=1)
    rest = table.log_ns - middle[table.look]
    trial = table.trial[table.look]
    deviation = np.maximum(1.4826 * _medians(np.abs(rest), trial), _LEAST_DEVIATION)[trial]
    stolen = (np.abs(table.state - usual[table.look]).max(axis=1) > STOLEN) | (np.abs(rest) > STOLEN)
    # A look of nothing but stolen moments has no other samples.
    weight = np.where(stolen, 1e-6, _huber(rest / deviation))
    state = np.stack([_means(column, table.look, weight) for column in table.state.T], axis=1)
    return _means(table.log_ns, table.look, weight), state * _reliability(state, table)


def _reliability(state: Any, table: _Samples) -> Any:
    """The share of each look's state that lasts, by look and state: the rest is noise of its readings.

    Where readings change within a look, a few of them tell little of the time between them. A regression on readings
    with noise needs this share (Carroll et al., Measurement Error in Nonlinear Models 2006, section 4.4).
    """
    freedom = np.maximum(table.readings - 1, 0)[:, None]
    squares = table.unrest * freedom
    typical = squares.sum(axis=0) / max(float(freedom.sum()), 1.0)
    # Moderated as the deviation between processes is: a few readings tell their own unrest roughly.
    unrest = (_GROUP_FREEDOM * typical + squares) / (_GROUP_FREEDOM + freedom)
    noise = unrest / np.maximum(table.readings, 1)[:, None]
    seen = (state**2 - noise).sum(axis=0) + _STATE_LOOKS * _STATE_DEVIATION**2
    lasting = np.maximum(seen / (len(state) + _STATE_LOOKS), 0.0)
    return np.where(noise > 0, lasting / np.where(noise > 0, lasting + noise, 1.0), 1.0)


def _labels(table: _Samples, lasting: Any) -> list[Label]:
    values, states = _looks(table)
    # One number per process of a trial: blocks of one process share its memory.
    units, unit = np.unique(np.stack([table.trial, table.process]), axis=1, return_inverse=True)
    unit, trial = unit.reshape(-1), units[0]
    ones = np.ones(len(values))
    state = np.stack([_means(states[:, column], unit, ones) for column in range(len(STATES))], axis=1)
    value = _medians(values, unit)
    alone = _alone(values - (states * lasting).sum(axis=1), unit)
    # Readings far from the samples say too little about them to fit their effect.
    beside = np.bincount(unit, _moves(table)) > 0
    processes = np.bincount(trial)
    effects = np.tile(lasting, (len(processes), 1))
    for _ in range(_ROUNDS):
        told = value - (state * effects[trial]).sum(axis=1)
        between = _between(told, trial, processes, table.group, alone)
        weight = _huber((told - _medians(told, trial)[trial]) / between[trial])
        centre = [_means(column, trial, weight)[trial] for column in (*state.T, value)]
        moments = _moments(
            state - np.stack(centre[:-1], axis=1),
            value - centre[-1],
            np.where(beside, weight, 0.0) / between[trial] ** 2,
            trial,
            len(processes),
        )
        effects = _effects(moments, table.group, lasting)
    told = value - (state * effects[trial]).sum(axis=1)
    between = _between(told, trial, processes, table.group, alone)
    weight = _huber((told - _medians(told, trial)[trial]) / between[trial])
    mean = _means(told, trial, weight)
    effective = np.bincount(trial, weight)
    # The state of few looks is far from the usual one, and the effect of the difference is known roughly.
    away = np.stack([_means(column, trial, weight) for column in state.T], axis=1)
    spread = _EFFECT_DEVIATION**2 / np.maximum(1, processes)
    # Few processes: the quantile of Student's distribution that 1.645 of these errors must reach, to first order.
    freedom = _GROUP_FREEDOM + processes - 1
    error = np.sqrt(between**2 / effective * (1 + 0.93 / freedom) ** 2 + (away**2).sum(axis=1) * spread)
    # A latency that the clock cannot resolve is not known at all.
    error = np.where(np.exp(mean) <= _RESOLUTION_NS, 1.0, error)
    slower = (states * effects[table.trial]).sum(axis=1)
    told_ns = np.exp(table.log_ns - slower[table.look])
    # Looks of one trial, and processes of one trial, stand next to each other.
    by_trial = np.split(told_ns, np.cumsum(np.bincount(table.trial[table.look]))[:-1])
    by_process = np.split(np.exp(told), np.cumsum(processes)[:-1])
    ratio = np.exp(_medians(slower, table.trial))
    return [
        Label(
            latency_ns=float(np.exp(mean[at])),
            standard_error=float(error[at]),
            effects=tuple(float(value) for value in effects[at]),
            ratio=float(ratio[at]),
            between=float(between[at]),
            by_process_ns=tuple(by_process[at].tolist()),
            told_ns=tuple(by_trial[at].tolist()),
        )
        for at in range(len(processes))
    ]


def _effects(moments: tuple[Any, Any], group: Any, prior: Any) -> Any:
    """The effect of the state on each trial: drawn towards that on its group, and that towards `prior`."""
    square, product = moments
    # A trial with many samples must not decide for its group: beyond the deviation between kernels, more samples of
    # the same kernel say nothing about others.
    share = 1.0 / (1.0 + _EFFECT_DEVIATION**2 * np.trace(square, axis1=1, axis2=2))
    of_group = (np.zeros((group.max() + 1, *square.shape[1:])), np.zeros((group.max() + 1, product.shape[1])))
    for total, part in zip(of_group, (square * share[:, None, None], product * share[:, None]), strict=True):
        np.add.at(total, group, part)
    everyone = _drawn((of_group[0].sum(axis=0)[None], of_group[1].sum(axis=0)[None]), prior)
    return _drawn(moments, _drawn(of_group, everyone)[group])


def _moments(x: Any, y: Any, weight: Any, index: Any, count: int) -> tuple[Any, Any]:
    """X'WX and X'Wy by index."""
    square = np.zeros((count, x.shape[1], x.shape[1]))
    product = np.zeros((count, x.shape[1]))
    np.add.at(square, index, weight[:, None, None] * x[:, :, None] * x[:, None, :])
    np.add.at(product, index, (weight * y)[:, None] * x)
    return square, product


def _drawn(moments: tuple[Any, Any], prior: Any) -> Any:
    """Ridge regression towards `prior`, from which single kernels and groups deviate alike."""
    square, product = moments
    penalty = 1.0 / _EFFECT_DEVIATION**2
    return np.linalg.solve(square + penalty * np.eye(square.shape[1]), (product + penalty * prior)[..., None])[..., 0]


def _huber(deviations: Any) -> Any:
    """The weight of a residual, given in deviations."""
    return np.minimum(1.0, _HUBER / np.maximum(np.abs(deviations), 1e-12))


def _between(values: Any, trial: Any, processes: Any, group: Any, alone: float) -> Any:
    """The deviation between processes of every trial, moderated by that of its group."""
    centred = values - _means(values, trial, np.ones(len(values)))[trial]
    squares = np.bincount(trial, centred**2, minlength=len(processes))
    freedom = processes - 1
    several = freedom > 0
    if not several.any():
        return np.full(len(processes), alone)
    own = np.where(several, squares / np.maximum(freedom, 1), 0.0)
    everyone = _typical(own[several], freedom[several])
    by_group = np.full(group.max() + 1, everyone)
    for number in range(len(by_group)):
        chosen = several & (group == number)
        if chosen.any():
            count = chosen.sum()
            found = _typical(own[chosen], freedom[chosen])
            by_group[number] = (count * found + _GROUP_STRENGTH * everyone) / (count + _GROUP_STRENGTH)
    by_group *= _tails(values, trial, np.sqrt(np.maximum(by_group, _LEAST_DEVIATION**2))[group])
    moderated = (_GROUP_FREEDOM * by_group[group] + squares) / (_GROUP_FREEDOM + freedom)
    return np.sqrt(np.maximum(moderated, _LEAST_DEVIATION**2))


def _tails(values: Any, trial: Any, deviation: Any) -> float:
    """By how much the variance between processes must grow for nine of ten differences to lie within 1.645 deviations.

    Differences of normal deviates need no growth. Those of a noisy machine have long tails, which a mean of variances
    without its largest ones leaves out.
    """
    place = np.arange(len(values)) - np.flatnonzero(np.diff(trial, prepend=-1))[trial]
    # Of every trial, the first process with the second, the third with the fourth, and so on.
    second = np.flatnonzero(place % 2 == 1)
    differences = np.abs(values[second] - values[second - 1]) / (math.sqrt(2) * deviation[trial[second]])
    # Never the largest of few differences: one kernel must not decide for all.
    growth = max(1.0, float(np.quantile(differences, 0.9, method="lower")) / 1.645) ** 2
    return 1.0 + (growth - 1.0) * len(second) / (len(second) + _GROUP_STRENGTH)


def _moves(table: _Samples) -> Any:
    """1 for every look with readings beside its samples, in which the state moves; 0 for the others."""
    first = np.flatnonzero(np.diff(table.look, prepend=-1))
    moved = np.abs(table.state - table.state[first][table.look]).max(axis=1)
    return (np.bincount(table.look, moved) > 0).astype(float)


def _alone(values: Any, unit: Any) -> float:
    """The deviation to expect between processes where no kernel was measured in two of them.

    Looks of one process share its memory, but not the moment.
    """
    looks = np.bincount(unit)
    several = looks[unit] > 1
    if not several.any():
        return _UNKNOWN_BETWEEN
    off = np.abs(values - _means(values, unit, np.ones(len(values)))[unit])[several]
    deviation = 1.4826 * float(np.median(off)) / math.sqrt(1 - 1 / float(np.median(looks[looks > 1])))
    return math.hypot(_UNKNOWN_BETWEEN, deviation / math.sqrt(float(np.median(looks))))


def _typical(variances: Any, freedom: Any) -> float:
    """A mean of variances in which no kernel counts more than nine times the median."""
    most = 9.0 * np.median(variances)
    return float(np.average(np.minimum(variances, most) if most > 0 else variances, weights=freedom))


def _means(values: Any, index: Any, weight: Any) -> Any:
    """The weighted mean of `values` by index."""
    return np.bincount(index, weight * values) / np.bincount(index, weight)


def _medians(values: Any, index: Any) -> Any:
    """The median of `values` by index; indices are 0 … n - 1, each at least once."""
    order = np.lexsort((values, index))
    ordered = values[order]
    counts = np.bincount(index)
    ends = np.cumsum(counts)
    starts = ends - counts
    return (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2
