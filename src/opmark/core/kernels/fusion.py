"""Verdicts on the fusion of two operators into one kernel: from the runtime's graph, and from the clock.

The clock's test is nn-Meter's (Zhang et al., MobiSys 2021, section 3.2): T₁ + T₂ − T₁₂ > ½·min(T₁, T₂). Where theirs
compares means of one shape, this one has a confidence interval and may be undecided.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from opmark.core.kernels.folding import clean_samples, worst_scheduling
from opmark.core.measurements.estimate import label, median, quantile
from opmark.core.measurements.measurement import OK
from opmark.core.measurements.records import Done, FusionRound, FusionTrial

FUSED = "fused"
NOT_FUSED = "not-fused"
UNDECIDED = "undecided"
VERDICTS = (FUSED, NOT_FUSED, UNDECIDED)

# The share of the faster part that a fusion has to save.
ALPHA = 0.5
_RESAMPLES = 500
_CONFIDENCE = (0.025, 0.975)
_RESOLUTION_NS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionMeasurement:
    """One pair of operators at one shape on one target.

    Latencies have the call's overhead removed. `saving` is (T₁ + T₂ − T₁₂) / min(T₁, T₂) with its 95 % interval;
    `kernels` are those of the runtime's graph of both together, each with the operators it covers;
    `inserted_saved` counts the layout reorders that both need apart but not together.
    """

    target: str
    pair: str
    first: str
    second: str
    shape: str
    status: str
    reason: str = ""
    white_box: str = UNDECIDED
    black_box: str = UNDECIDED
    kernels: str = ""
    inserted_saved: int = 0
    first_ns: float | None = None
    second_ns: float | None = None
    block_ns: float | None = None
    overhead_ns: float | None = None
    saving: float | None = None
    saving_low: float | None = None
    saving_high: float | None = None
    clean_fraction: float | None = None
    samples: int = 0
    processes: int = 0
    scheduling: str = "normal"
    suite: str = ""
    environment_id: str = ""
    journal: str | None = None
    measured_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """Both verdicts on a pair over all its shapes; `saving` is their median, `note` explains a difference."""

    target: str
    pair: str
    white_box: str
    black_box: str
    shapes: int
    saving: float | None
    savings: tuple[float, ...]
    kernels: str
    note: str = ""

    @property
    def differ(self) -> bool:
        """True if clock and graph contradict each other."""
        return {self.white_box, self.black_box} == {FUSED, NOT_FUSED}


def saving(first_ns: float, second_ns: float, block_ns: float) -> float:
    """(T₁ + T₂ − T₁₂) / min(T₁, T₂); a part faster than the clock resolves counts as its resolution."""
    return (first_ns + second_ns - block_ns) / max(min(first_ns, second_ns), _RESOLUTION_NS)


def obeys(first_ns: float, second_ns: float, block_ns: float) -> bool:
    """nn-Meter's published rule, for three numbers of one unit."""
    return first_ns + second_ns - block_ns > ALPHA * min(first_ns, second_ns)


def decided(low: float, high: float) -> str:
    """The verdict of a saving between `low` and `high`."""
    if low > ALPHA:
        return FUSED
    return NOT_FUSED if high < ALPHA else UNDECIDED


def saving_interval(rounds: Sequence[tuple[float, float, float]], *, seed: str = "") -> tuple[float, float, float]:
    """The saving over rounds of (T₁, T₂, T₁₂), and the ends of its 95 % interval.

    A percentile bootstrap over whole rounds: the three are measured next to each other in a round, so a slow
    round moves them together. Raises `ValueError` without rounds.
    """
    if not rounds:
        raise ValueError("no rounds")
    chance = random.Random(seed)
    draws = sorted(_saving_of(chance.choices(rounds, k=len(rounds))) for _ in range(_RESAMPLES))
    low, high = (quantile(draws, fraction) for fraction in _CONFIDENCE)
    return _saving_of(rounds), low, high


def fold_fusion(
    trial: FusionTrial,
    done: Done,
    rounds: Sequence[FusionRound],
    *,
    overhead_ns: float,
    suite: str,
    environment_id: str,
) -> FusionMeasurement:
    """The row of a finished trial."""
    row = partial(
        FusionMeasurement,
        target=trial.target,
        pair=trial.pair,
        first=trial.first,
        second=trial.second,
        shape=trial.shape,
        status=done.status,
        suite=suite,
        environment_id=environment_id,
    )
    if done.status != OK or not rounds:
        return row(reason=done.reason)
    labels = [_labels(item, overhead_ns) for item in rounds]
    found, low, high = saving_interval(labels, seed=trial.trial)
    first_ns, second_ns, block_ns = (max(_RESOLUTION_NS, median(times)) for times in zip(*labels, strict=True))
    flags = "".join(text for item in rounds for text in item.clean)
    resolved = min(first_ns, second_ns) > _RESOLUTION_NS
    return row(
        white_box=rounds[0].white_box,
        black_box=decided(low, high) if resolved else UNDECIDED,
        kernels=rounds[0].kernels,
        inserted_saved=rounds[0].inserted_saved,
        first_ns=first_ns,
        second_ns=second_ns,
        block_ns=block_ns,
        overhead_ns=overhead_ns,
        saving=found,
        saving_low=low,
        saving_high=high,
        clean_fraction=flags.count("1") / len(flags),
        samples=len(flags),
        processes=len({item.process for item in rounds}),
        scheduling=worst_scheduling(rounds),
    )


def pair_verdicts(rows: Iterable[FusionMeasurement]) -> tuple[PairVerdict, ...]:
    """One verdict per measured target and pair, in the order of `rows`.

    A verdict needs more than half of the shapes and no opposite one.
    """
    groups: dict[tuple[str, str], list[FusionMeasurement]] = defaultdict(list)
    for row in rows:
        if row.status == OK:
            groups[row.target, row.pair].append(row)
    return tuple(_pair_verdict(target, pair, group) for (target, pair), group in groups.items())


def _pair_verdict(target: str, pair: str, rows: Sequence[FusionMeasurement]) -> PairVerdict:
    savings = tuple(row.saving for row in rows if row.saving is not None)
    white, black = (_agreed([getattr(row, name) for row in rows]) for name in ("white_box", "black_box"))
    note = ""
    if {white, black} == {FUSED, NOT_FUSED}:
        saved = [row.inserted_saved for row in rows]
        if black == FUSED and min(saved) > 0:
            note = f"two kernels, but together they need {min(saved)} fewer layout reorders"
        elif black == FUSED:
            note = "two kernels, but the second finds its input in cache, or the call's cost is not all removed"
        elif all(row.saving_high is not None and row.saving_high < 0 for row in rows):
            note = "one kernel, and slower than the two apart"
        else:
            note = "one kernel that saves too little to see"
    return PairVerdict(
        target=target,
        pair=pair,
        white_box=white,
        black_box=black,
        shapes=len(rows),
        saving=median(savings) if savings else None,
        savings=savings,
        kernels=Counter(row.kernels for row in rows).most_common(1)[0][0],
        note=note,
    )


def _agreed(verdicts: Sequence[str]) -> str:
    counts = Counter(verdicts)
    for verdict, opposite in ((FUSED, NOT_FUSED), (NOT_FUSED, FUSED)):
        if 2 * counts[verdict] > len(verdicts) and not counts[opposite]:
            return verdict
    return UNDECIDED


def _labels(item: FusionRound, overhead_ns: float) -> tuple[float, float, float]:
    first, second, block = (
        label(clean_samples(times, flags)) - overhead_ns
        for times, flags in zip((item.first_ns, item.second_ns, item.block_ns), item.clean, strict=True)
    )
    return first, second, block


def _saving_of(rounds: Sequence[tuple[float, float, float]]) -> float:
    first, second, block = (median(times) for times in zip(*rounds, strict=True))
    return saving(first, second, block)
