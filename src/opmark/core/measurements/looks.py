"""Looks at a kernel or network, and the one number that each of them becomes (decisions 0022 and 0035).

A *look* is one visit in one process: samples in turns, and beside every turn the state of the machine. The state is the
logarithm of each sentinel's reading over its reading at the state at which labels are told. That is the calm state of a
machine that is calm often. Other machines, journals whose readings do not stand beside the samples, and executions that
are compared with their predictions are told at the usual state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

STATES = ("compute", "memory")
# A reading this far above the others of its look, in logarithms, was interrupted.
STOLEN = 0.7
# At a state that slows a kernel down by this much, its variance is twice that of the calm state.
CALM = 0.02
# A sample, or a process, counts half if it is this much slower than the fastest ones.
FAST = 0.03
# The share of the samples up to which they count as fast.
_FAST_SAMPLES = 0.05
# A residual beyond this many deviations counts as much as one at this distance (Huber).
_HUBER = 1.5
# The deviation of lasting states before any was read, and the number of looks that it counts for; the freedom of the
# typical unrest in that of one look.
_STATE_DEVIATION = 0.15
_STATE_LOOKS = 8.0
_UNREST_FREEDOM = 4.0
# No label is known better: the samples of one look share what a sentinel cannot see.
LEAST_DEVIATION = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Samples of one block in ns, and the state beside each, one row of `len(STATES)` numbers per sample.

    Without a known state, the rows are zero. Samples are `brief` if the readings before and after one tell its state.
    `unrest` are the variances of single readings within the look, one per state, and `readings` is their number;
    without them, the state counts as known exactly.
    """

    process: int
    ns: Sequence[float]
    state: Any
    brief: bool = True
    readings: int = 0
    unrest: tuple[float, ...] = (0.0,) * len(STATES)

    @property
    def states(self) -> Any:
        """The state as an array, one row per sample and one column per state."""
        return np.asarray(self.state, dtype=float).reshape(-1, len(STATES))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookTable:
    """All samples in one table; `look` of each sample, `trial` and `process` of each look, `group` of each trial.

    `brief`, `readings` and `unrest` are those of each look.
    """

    log_ns: Any
    state: Any
    look: Any
    trial: Any
    process: Any
    group: Any
    brief: Any
    readings: Any
    unrest: Any

    @classmethod
    def of(cls, found: Sequence[Sequence[Look]], groups: Sequence[str]) -> "LookTable":
        """The table of the looks at every trial; every look has samples, and every trial a group."""
        flat = [(number, look) for number, looks in enumerate(found) for look in looks]
        names = sorted(set(groups))
        return cls(
            log_ns=np.log(np.concatenate([np.asarray(look.ns, dtype=float) for _, look in flat])),
            state=np.concatenate([look.states for _, look in flat]),
            look=np.repeat(np.arange(len(flat)), [len(look.ns) for _, look in flat]),
            trial=np.array([number for number, _ in flat]),
            process=np.array([look.process for _, look in flat]),
            group=np.array([names.index(name) for name in groups]),
            brief=np.array([look.brief for _, look in flat]),
            readings=np.array([look.readings for _, look in flat], dtype=float),
            unrest=np.array([look.unrest for _, look in flat]),
        )


def calm_numbers(table: LookTable, lasting: Any, fast: float = FAST) -> tuple[Any, Any, Any]:
    """One number per look, the weighted mean of its logarithms; the state beside these samples; the look's calmness.

    Samples count by their calmness. Those of a calm moment count by how little slower they are than the fastest, too:
    what disturbs a sample unseen makes it slower, never faster. Samples that last longer than the machine's moments
    have no known state but that of the clock, which the fastest reading beside them tells.
    """
    state = table.state.copy()
    long = ~table.brief[table.look]
    state[long] = 0.0
    state[long, 0] = _lowest(table.state[:, 0], table.look)[table.look][long]
    calmness = _calmness(state, lasting)
    # The clock slows down all samples alike, so the fastest are still those that nothing else disturbed.
    slower = means_of(state, table.look, calmness) @ lasting * table.brief
    weight = calmness * fast_weights(table.log_ns, table.look, calmness, slower, share=_FAST_SAMPLES, fast=fast)
    state = means_of(state, table.look, weight)
    # Neither a look far from the calm state nor one of few calm samples tells as much as a calm one.
    few = 1.0 / np.bincount(table.look, weight)
    return means(table.log_ns, table.look, weight), state, 1.0 / (1.0 / _calmness(state, lasting) + few)


def usual_numbers(table: LookTable) -> tuple[Any, Any, Any]:
    """As `calm_numbers`, at the usual state: all looks are equally calm.

    Means follow a machine that jumps between two speeds better than medians. Samples far from the middle of their look
    count less (Huber), and those beside a stolen moment not at all: such a reading says nothing about its sample.
    """
    middle = medians(table.log_ns, table.look)
    usual = np.stack([medians(column, table.look) for column in table.state.T], axis=1)
    rest = table.log_ns - middle[table.look]
    trial = table.trial[table.look]
    deviation = np.maximum(1.4826 * medians(np.abs(rest), trial), LEAST_DEVIATION)[trial]
    stolen = (np.abs(table.state - usual[table.look]).max(axis=1) > STOLEN) | (np.abs(rest) > STOLEN)
    # A look of nothing but stolen moments has no other samples.
    weight = np.where(stolen, 1e-6, huber_weights(rest / deviation))
    state = means_of(table.state, table.look, weight)
    return means(table.log_ns, table.look, weight), state * _reliability(state, table), np.ones(len(state))


def _reliability(state: Any, table: LookTable) -> Any:
    """The share of each look's state that lasts, by look and state: the rest is noise of its readings.

    Where readings change within a look, a few of them tell little of the time between them. A regression on readings
    with noise needs this share (Carroll et al., Measurement Error in Nonlinear Models 2006, section 4.4).
    """
    freedom = np.maximum(table.readings - 1, 0)[:, None]
    squares = table.unrest * freedom
    typical = squares.sum(axis=0) / max(float(freedom.sum()), 1.0)
    # Moderated as the deviation between processes is: a few readings tell their own unrest roughly.
    unrest = (_UNREST_FREEDOM * typical + squares) / (_UNREST_FREEDOM + freedom)
    noise = unrest / np.maximum(table.readings, 1)[:, None]
    seen = (state**2 - noise).sum(axis=0) + _STATE_LOOKS * _STATE_DEVIATION**2
    lasting = np.maximum(seen / (len(state) + _STATE_LOOKS), 0.0)
    return np.where(noise > 0, lasting / np.where(noise > 0, lasting + noise, 1.0), 1.0)


def _calmness(state: Any, lasting: Any) -> Any:
    """The weight of something measured at `state` over that of the same at the calm state: one over its variance."""
    return 1.0 / (1.0 + (state @ lasting / CALM) ** 2)


def fast_weights(values: Any, index: Any, weight: Any, slower: Any, *, share: float, fast: float = FAST) -> Any:
    """The weights of `values` by how much slower they are than the fastest `share` of their index: half at `fast`.

    Where all of an index was measured at states that are `slower` than the calm one, its values count alike: the
    fastest of them are those whose state is told too high.
    """
    excess = np.maximum(values - _low(values, index, weight, share)[index], 0.0)
    restless = (slower[index] / fast) ** 4
    return (1.0 / (1.0 + (excess / fast) ** 4) + restless) / (1.0 + restless)


def huber_weights(deviations: Any) -> Any:
    """The weight of a residual, given in deviations."""
    return np.minimum(1.0, _HUBER / np.maximum(np.abs(deviations), 1e-12))


def means(values: Any, index: Any, weight: Any) -> Any:
    """The weighted mean of `values` by index."""
    return np.bincount(index, weight * values) / np.bincount(index, weight)


def means_of(columns: Any, index: Any, weight: Any) -> Any:
    """The weighted mean of every column by index."""
    return np.stack([means(column, index, weight) for column in columns.T], axis=1)


def medians(values: Any, index: Any) -> Any:
    """The median of `values` by index; indices are 0 … n - 1, each at least once."""
    order = np.lexsort((values, index))
    ordered = values[order]
    counts = np.bincount(index)
    ends = np.cumsum(counts)
    starts = ends - counts
    return (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2


def weighted_medians(values: Any, index: Any, weight: Any) -> Any:
    """The median of weighted `values` by index: between the two values whose middles of weight lie around a half."""
    order = np.lexsort((values, index))
    ordered, of = values[order], index[order]
    counts = np.bincount(index)
    ends = np.cumsum(counts) - 1
    starts = ends - counts + 1
    total = np.bincount(index, weight)
    passed = np.cumsum(weight[order]) - weight[order] / 2 - (np.cumsum(total) - total)[of]
    middle = passed / total[of]
    above = np.clip(np.searchsorted(middle + of, np.arange(len(counts)) + 0.5), starts, ends)
    below = np.maximum(above - 1, starts)
    gap = middle[above] - middle[below]
    share = np.where(gap > 0, (0.5 - middle[below]) / np.where(gap > 0, gap, 1.0), 1.0).clip(0.0, 1.0)
    return ordered[below] + share * (ordered[above] - ordered[below])


def _lowest(values: Any, index: Any) -> Any:
    counts = np.bincount(index)
    return values[np.lexsort((values, index))][np.cumsum(counts) - counts]


def _low(values: Any, index: Any, weight: Any, share: float) -> Any:
    """A low quantile of `values` by index: the first value at which `share` of the weight is reached."""
    order = np.lexsort((values, index))
    passed = np.cumsum(weight[order])
    total = np.bincount(index, weight)
    reached = np.cumsum(total) - (1 - share) * total
    # Rounding must not move it into the next index.
    ends = np.cumsum(np.bincount(index)) - 1
    return values[order][np.minimum(np.searchsorted(passed, reached), ends)]
