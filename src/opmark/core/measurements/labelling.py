"""Estimate labels at one state of the machine, with their standard errors (decisions 0022, 0035, 0065, 0066).

Four steps lead from looks to a label; `looks` has the first.

1. Every look becomes one number, a mean over its calm samples, and has a *calmness*: far from the calm state, the
   variance of such a number grows.
2. A robust regression gives the effect of the state on each kernel. Few samples of one kernel cannot tell this effect,
   so it is drawn towards the effect on its group (kernels of its kind), and that towards the effect on all.
3. The label is the mean over processes at the calm state, those that are slower than the fastest counting less.
4. Its standard error comes from the differences between processes: `process_variances`.

Labels at the usual state are told alike, but all processes are equally calm, and those far from their middle count
less.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from opmark.core.measurements.looks import (
    FAST,
    Look,
    LookTable,
    calm_numbers,
    fast_weights,
    huber_weights,
    means,
    means_of,
    medians,
    usual_numbers,
)
from opmark.core.measurements.process_variances import (
    Processes,
    Weigh,
    from_median,
    process_variances,
    student,
    weigh_alike,
)

K = TypeVar("K", bound=Hashable)

# Effects of the state differ between kernels by about this much.
_EFFECT_DEVIATION = 0.15
# The effect of a lasting change before anything was measured: most of compute, some of memory, together all of it. A
# kernel whose tensors are in the caches follows compute, and both together more than one to one (decision 0066).
LASTING_EFFECT = (0.7, 0.3)
HOT_EFFECT = (0.9, 0.2)
# Rotated labels of two hours differ by more than either hour can see: so much in each (decision 0065).
ROTATED_SHARED = 0.02
# Memory that is shared with others differs between looks that nothing disturbs, and by more than caches do.
ROTATED_FAST = 0.05
# The deviation of restless looks from what their state tells.
_RESTLESS = 0.2
# The share of a trial's processes up to which they count as fast.
_FAST_PROCESSES = 0.4
_ROUNDS = 3
# Between processes where no kernel was measured in two of them.
_UNKNOWN_BETWEEN = 0.03
# A shorter time is noise of the clock.
_RESOLUTION_NS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A latency in ns at the calm state, or the usual one, with its standard error as a fraction of it.

    `shared` is the part of that error which more looks cannot reduce. `effects` tell by which share of a change of each
    sentinel the latency changes, and `ratio` how many times longer the samples took than at that state. `between` is
    the deviation between calm processes, as a fraction, and `effective` the number of calm processes that would tell
    the label as well. `by_process_ns` is the label of each process alone, and `told_ns` are the samples, all at that
    state.
    """

    latency_ns: float
    standard_error: float
    shared: float
    effects: tuple[float, ...]
    ratio: float
    between: float
    effective: float
    by_process_ns: tuple[float, ...]
    told_ns: tuple[float, ...]

    @property
    def reducible_error(self) -> float:
        """The part of the standard error that more looks can reduce."""
        return math.sqrt(max(self.standard_error**2 - self.shared**2, 0.0))

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
    calm: bool = True,
    shared: float = 0.0,
    fast: float = FAST,
) -> dict[K, Label]:
    """The label of every key with looks; kernels of one group (their kind) help each other.

    `lasting` is the effect of a lasting change of each state before anything was measured. States are relative to the
    calm one, or else to the usual one. `shared` is the deviation that all labels of a run have in common. At the calm
    state, what is slower than the fastest by `fast` counts half.
    """
    keys = [key for key, found in looks.items() if found]
    if not keys:
        return {}
    table = LookTable.of([looks[key] for key in keys], [(groups or {}).get(key, "") for key in keys])
    return dict(zip(keys, _labels(table, np.array(lasting), calm=calm, shared=shared, fast=fast), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """One number per process of a trial, for blocks of one process share its memory; `trial` of each process.

    `slower` is what the state beside a trial's processes makes of its time, by trial, and `alone` the deviation between
    processes where none of a trial can be compared with another. `beside` is where readings stand beside samples.
    """

    value: Any
    state: Any
    calmness: Any
    trial: Any
    group: Any
    slower: Any
    alone: float
    beside: Any
    calm: bool
    fast: float

    @classmethod
    def of(cls, table: LookTable, numbers: tuple[Any, Any, Any], lasting: Any, *, calm: bool, fast: float) -> "_Units":
        """The processes behind the `numbers` of all looks."""
        values, states, weight = numbers
        units, unit = np.unique(np.stack([table.trial, table.process]), axis=1, return_inverse=True)
        unit, trial = unit.reshape(-1), units[0]
        state, calmness = means_of(states, unit, weight), means(weight, unit, weight)
        return cls(
            value=means(values, unit, weight) if calm else medians(values, unit),
            state=state,
            calmness=calmness,
            trial=trial,
            group=table.group,
            slower=means_of(state, trial, calmness) @ lasting * (np.bincount(table.trial, table.brief) > 0),
            alone=_alone(values - states @ lasting, unit),
            # Readings far from the samples say too little about them to fit their effect.
            beside=np.bincount(unit, _moves(table)) > 0,
            calm=calm,
            fast=fast,
        )

    def told(self, effects: Any) -> Any:
        """The values at the state of labels."""
        return self.value - (self.state * effects[self.trial]).sum(axis=1)

    def weigh(self, told: Any) -> Weigh:
        """The weights of processes in labels."""
        return self._fastest(told) if self.calm else self._middle(told)

    def between(self, told: Any, weigh: Weigh) -> Any:
        """The deviation between processes by trial."""
        found = Processes(value=told, calmness=self.calmness, trial=self.trial, group=self.group)
        return np.sqrt(process_variances(found, weigh, alone=self.alone))

    def _fastest(self, told: Any) -> Weigh:
        """Calm processes that are slower than the fastest count less."""

        def weigh(chosen: Any, index: Any) -> Any:
            slower = means(self.slower[self.trial[chosen]], index, np.ones(len(chosen)))
            calmness = self.calmness[chosen]
            share, fast = _FAST_PROCESSES, self.fast
            return calmness * fast_weights(told[chosen], index, calmness, slower, share=share, fast=fast)

        return weigh

    def _middle(self, told: Any) -> Weigh:
        """Processes far from the middle count less."""
        between = self.between(told, weigh_alike)

        def weigh(chosen: Any, index: Any) -> Any:
            middle = medians(told[chosen], index)[index]
            return huber_weights((told[chosen] - middle) / between[self.trial[chosen]])

        return weigh

    def effects(self, lasting: Any) -> Any:
        """The effect of each state on every trial."""
        trials = len(self.group)
        effects = np.tile(lasting, (trials, 1))
        for _ in range(_ROUNDS):
            told = self.told(effects)
            weigh = self.weigh(told)
            weight = weigh(np.arange(len(told)), self.trial)
            # Restless looks tell what the state does, and calm ones what the kernel takes without it.
            centre = [means(column, self.trial, weight)[self.trial] for column in (*self.state.T, self.value)]
            deviation = np.full(len(told), _RESTLESS) if self.calm else self.between(told, weigh)[self.trial]
            off = told - means(told, self.trial, weight)[self.trial]
            kept = huber_weights(off / deviation) if self.calm else weight
            moments = _moments(
                self.state - np.stack(centre[:-1], axis=1),
                self.value - centre[-1],
                np.where(self.beside, kept, 0.0) / deviation**2,
                self.trial,
                trials,
            )
            effects = _effects(moments, self.group, lasting)
        return effects


def _labels(table: LookTable, lasting: Any, *, calm: bool, shared: float, fast: float) -> list[Label]:
    numbers = calm_numbers(table, lasting, fast) if calm else usual_numbers(table)
    units = _Units.of(table, numbers, lasting, calm=calm, fast=fast)
    trial, processes = units.trial, np.bincount(units.trial)
    effects = units.effects(lasting)
    told = units.told(effects)
    weigh = units.weigh(told)
    weight, between = weigh(np.arange(len(told)), trial), units.between(told, weigh)
    mean = means(told, trial, weight)
    effective = np.bincount(trial, weight)
    # The state of few looks is far from that of labels, and the effect of the difference is known roughly.
    away = means_of(units.state, trial, weight)
    spread = _EFFECT_DEVIATION**2 / processes
    variance = (student(processes) * between) ** 2 / effective
    variance += from_median(told, trial, units.calmness, mean) ** 2
    error = np.sqrt(variance + (away**2).sum(axis=1) * spread + shared**2)
    # A latency that the clock cannot resolve is not known at all.
    error = np.where(np.exp(mean) <= _RESOLUTION_NS, 1.0, error)
    slower = (numbers[1] * effects[table.trial]).sum(axis=1)
    told_ns = np.exp(table.log_ns - slower[table.look])
    # Looks of one trial, and processes of one trial, stand next to each other.
    by_trial = np.split(told_ns, np.cumsum(np.bincount(table.trial[table.look]))[:-1])
    by_process = np.split(np.exp(told), np.cumsum(processes)[:-1])
    # A calm number leaves out what took longer.
    taken = medians(table.log_ns, table.look) - mean[table.trial] if calm else slower
    ratio = np.exp(medians(taken, table.trial))
    return [
        Label(
            latency_ns=float(np.exp(mean[at])),
            standard_error=float(error[at]),
            shared=shared,
            effects=tuple(float(value) for value in effects[at]),
            ratio=float(ratio[at]),
            between=float(between[at]),
            effective=float(effective[at]),
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


def _moves(table: LookTable) -> Any:
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
    off = np.abs(values - means(values, unit, np.ones(len(values)))[unit])[several]
    deviation = 1.4826 * float(np.median(off)) / math.sqrt(1 - 1 / float(np.median(looks[looks > 1])))
    return math.hypot(_UNKNOWN_BETWEEN, deviation / math.sqrt(float(np.median(looks))))
