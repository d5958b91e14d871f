"""The fidelity of the simulator per device and track: errors, rankings, regret, and the noise beside them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, permutations
from statistics import fmean, median

from opmark.leaderboards.fidelity.records import FidelityRecord
from opmark.leaderboards.fidelity.told import PARTS, MeasuredPlacement, raw_placements, told_placements


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityFigures:
    """The figures of one track on one device; `n` placements of `problems` problems were executed.

    Makespans are told at the state of the labels. `median_error`: |predicted / measured - 1|, the median over
    placements. `tau`: Kendall's rank correlation between predicted and measured makespans of one problem, over all
    pairs whose predictions differ by more than the noise floor (None without such a pair). `regret`: the extra time of
    the placement that was predicted to be best over the one that was, the mean over problems. `noise_floor`: the
    difference between two visits to one placement, the median. `repeat_tau` and `repeat_regret` put one visit in place
    of the prediction and judge it by another visit. `standard_error`: that of a measured makespan, the median. `parts`:
    what measured minus predicted consists of, as shares of the makespan, medians. The `raw` figures are those of the
    clock.
    """

    device: str
    track: str
    problems: int
    n: int
    median_error: float
    bias: float
    tau: float | None
    pairs: int
    regret: float
    noise_floor: float | None
    repeat_tau: float | None = None
    repeat_regret: float | None = None
    standard_error: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    raw_median_error: float | None = None
    raw_tau: float | None = None
    raw_regret: float | None = None
    raw_noise_floor: float | None = None


def fidelity_figures(records: Iterable[FidelityRecord]) -> list[FidelityFigures]:
    """The figures of every device and track with executed placements."""
    groups: dict[tuple[str, str], list[FidelityRecord]] = defaultdict(list)
    for record in records:
        if record.executed:
            groups[record.device, record.track].append(record)
    return [_figures(device, track, found) for (device, track), found in sorted(groups.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Figures of the same placements, measured in one way."""

    errors: Sequence[float]
    signs: Sequence[int]
    regret: float
    floor: float | None

    @classmethod
    def of(cls, problems: Sequence[Sequence[MeasuredPlacement]]) -> "_Judged":
        placements = [one for own in problems for one in own]
        floor = noise_floor(placements)
        return cls(
            errors=[one.error for one in placements],
            signs=[sign for own in problems for sign in pair_signs(own, floor or 0.0)],
            regret=fmean(map(regret_of, problems)),
            floor=floor,
        )

    @property
    def tau(self) -> float | None:
        return fmean(self.signs) if self.signs else None


def _figures(device: str, track: str, records: Sequence[FidelityRecord]) -> FidelityFigures:
    problems = told_placements(records)
    placements = [one for own in problems for one in own]
    told, raw = _Judged.of(problems), _Judged.of(raw_placements(records))
    known = [one.standard_error for one in placements if one.standard_error is not None]
    return FidelityFigures(
        device=device,
        track=track,
        problems=len(records),
        n=len(placements),
        median_error=median(map(abs, told.errors)),
        bias=median(told.errors),
        tau=told.tau,
        pairs=len(told.signs),
        regret=told.regret,
        noise_floor=told.floor,
        repeat_tau=repeat_tau(problems, told.floor or 0.0),
        repeat_regret=repeat_regret(problems),
        standard_error=median(known) if known else None,
        parts={name: median(one.parts[name] for one in placements) for name in PARTS},
        raw_median_error=median(map(abs, raw.errors)),
        raw_tau=raw.tau,
        raw_regret=raw.regret,
        raw_noise_floor=raw.floor,
    )


def noise_floor(placements: Iterable[MeasuredPlacement]) -> float | None:
    """The median relative difference between two visits in a row to one placement; None without a second visit."""
    changes = [abs(b / a - 1) for one in placements for a, b in pairwise(one.visits_ns)]
    return median(changes) if changes else None


def told_apart(
    placements: Iterable[MeasuredPlacement], noise: float
) -> Iterator[tuple[MeasuredPlacement, MeasuredPlacement]]:
    """The pairs whose predictions differ by more than `noise`, the faster prediction first: others say nothing."""
    for one, other in combinations(sorted(placements, key=lambda one: one.predicted_ns), 2):
        if other.predicted_ns > one.predicted_ns * (1 + noise):
            yield one, other


def pair_signs(placements: Iterable[MeasuredPlacement], noise: float) -> list[int]:
    """1 for each pair that prediction and measurement order alike, -1 for the others, 0 for equal measurements."""
    return [
        (other.measured_ns > one.measured_ns) - (other.measured_ns < one.measured_ns)
        for one, other in told_apart(placements, noise)
    ]


def regret_of(placements: Sequence[MeasuredPlacement]) -> float:
    """The extra time of the placement with the best prediction, as a share of the best measured time."""
    chosen = min(placements, key=lambda one: one.predicted_ns)
    return chosen.measured_ns / min(one.measured_ns for one in placements) - 1


def repeat_tau(problems: Iterable[Sequence[MeasuredPlacement]], noise: float) -> float | None:
    """Kendall's tau between two visits, over the pairs that `pair_signs` judges; None without such a pair."""
    signs = []
    for own in problems:
        for one, other in told_apart(own, noise):
            changes = [a - b for a, b in zip(one.visits_ns, other.visits_ns, strict=False)]
            signs += [(a * b > 0) - (a * b < 0) for a, b in combinations(changes, 2)]
    return fmean(signs) if signs else None


def repeat_regret(problems: Iterable[Sequence[MeasuredPlacement]]) -> float | None:
    """The mean regret, by another visit, of the placement that one visit found best; None where visits are single."""
    found = []
    for own in problems:
        visits = zip(*(one.visits_ns for one in own), strict=False)
        for one, other in permutations(list(visits), 2):
            chosen = min(range(len(one)), key=one.__getitem__)
            found.append(other[chosen] / min(other) - 1)
    return fmean(found) if found else None
