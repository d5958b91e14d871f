"""Scores by split: stored instances, which everybody knows, beside twins and unseen ones, which nobody does.

A submission's score counts twins and unseen instances only. Where it is clearly better on the stored instances than on
those, it recalls answers, and its worst split is its score.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.core.reading import LARGE_BYTES
from opmark.core.schema import load
from opmark.leaderboards.scoring.metric import Result
from opmark.leaderboards.scoring.score_formulas import geometric_mean, interval

SCHEMA = 1
STANDINGS = "standings.json"
COUNTED = "counted.json"
OWNER = "owner.json"
HIDDEN, FRESH = "hidden", "fresh"
# An entry recalls answers where its intervals lie apart and it loses more than this share of its score.
RECALL_ABOVE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScore:
    """The score of one entry on the instances of one split, with its 95 % interval."""

    score: float
    low: float
    high: float
    instances: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The splits that count for a submission. `source` of the unseen ones: `hidden`, or `fresh` for its own draw."""

    sha256: str
    twins: SplitScore
    unseen: SplitScore | None = None
    source: str = ""

    @property
    def splits(self) -> tuple[SplitScore, ...]:
        """All splits that count."""
        return (self.twins,) if self.unseen is None else (self.twins, self.unseen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """An entry's scores side by side; None where a split was not run.

    `drop` is the share of the score on stored instances that is lost on the worst of the other splits. Where it is too
    large for chance, `recalls` is true.
    """

    public: float | None
    validation: float | None
    twins: float | None = None
    hidden: float | None = None
    drop: float | None = None
    recalls: bool = False


def split_score(results: Sequence[Result]) -> SplitScore:
    """The score of some results of one entry."""
    qualities = [result.quality for result in results if result.scored]
    low, high = interval(qualities)
    return SplitScore(score=geometric_mean(qualities), low=low, high=high, instances=len(qualities))


def score_counted(counted: Counted, stored: SplitScore) -> SplitScore:
    """The score of a submission: the geometric mean of its splits, or the worst one where it recalls answers."""
    parts = counted.splits
    instances = sum(part.instances for part in parts)
    if recalls(stored, parts):
        worst = min(parts, key=lambda part: part.score)
        return SplitScore(score=worst.score, low=worst.low, high=worst.high, instances=instances)
    if not all(part.low > 0 for part in parts):
        return SplitScore(score=0.0, low=0.0, high=max(part.high for part in parts), instances=instances)
    middle = math.fsum(math.log(part.score) for part in parts) / len(parts)
    # independent errors add in squares
    below = math.hypot(*(math.log(part.score / part.low) for part in parts)) / len(parts)
    above = math.hypot(*(math.log(part.high / part.score) for part in parts)) / len(parts)
    return SplitScore(
        score=math.exp(middle), low=math.exp(middle - below), high=math.exp(middle + above), instances=instances
    )


def recalls(stored: SplitScore, others: Sequence[SplitScore]) -> bool:
    """True where a score on stored instances is clearly above that on any other split."""
    return any(
        stored.low > other.high and other.score < (1 - RECALL_ABOVE) * stored.score
        for other in others
        if other.instances
    )


def splits_of(
    results: Sequence[Result], validation: frozenset[str], counted: Counted | None, hidden: SplitScore | None
) -> Splits:
    """The splits of an entry with `results` on stored instances; `hidden` is its score on hidden ones, if known."""
    stored = split_score(results)
    halves = [[result for result in results if (result.problem in validation) is held] for held in (False, True)]
    public, held_out = (split_score(half) for half in halves)
    unseen = counted.unseen if counted and counted.unseen else hidden
    others = [part for part in (counted.twins if counted else None, unseen) if part is not None]
    worst = min((part.score for part in others), default=None)
    return Splits(
        public=public.score if public.instances else None,
        validation=held_out.score if held_out.instances else None,
        twins=counted.twins.score if counted else None,
        hidden=None if unseen is None else unseen.score,
        drop=None if worst is None or not stored.score else 1 - worst / stored.score,
        recalls=recalls(stored, others),
    )


def read_counted(track: Path) -> dict[str, Counted | None]:
    """The counted splits of each submission to the track in a folder; None while it is being scored.

    Submissions without an owner were stored by OpMark 0.1, which counted stored instances; they are left out.
    """
    found: dict[str, Counted | None] = {}
    for owner in sorted((track / "submissions").glob(f"*/{OWNER}")):
        path = owner.with_name(COUNTED)
        found[owner.parent.name] = load(path, Counted, schema=SCHEMA, sealed=True) if path.is_file() else None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """One entry of a stored `standings.json`; `results` and the rest of the row are as in the file."""

    rank: int
    name: str
    score: float
    low: float
    high: float
    results: tuple[Mapping[str, Any], ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStandings:
    """The content of a stored `standings.json`."""

    track: str
    note: str
    rows: tuple[StoredRow, ...]


def stored_standings(folder: Path) -> StoredStandings | None:
    """The stored standings of a track's folder, None without a file.

    Raises `ContentError` for a file that was changed since it was written.
    """
    path = folder / STANDINGS
    return load(path, StoredStandings, schema=SCHEMA, sealed=True, at_most=LARGE_BYTES) if path.is_file() else None


def hidden_scores(track: Path) -> Mapping[str, SplitScore]:
    """The scores of a track's entries on its hidden instances, from the standings in its folder `hidden/`."""
    found = stored_standings(track / "hidden")
    return {
        row.name: SplitScore(
            score=row.score,
            low=row.low,
            high=row.high,
            instances=sum(bool(result.get("scored")) for result in row.results),
        )
        for row in (found.rows if found else ())
    }
