"""The instances that count for a submission, drawn after it was signed: twins of the stored ones, and unseen ones.

The seed of the draw belongs to one archive. It is published beside the archive, so that anybody can draw the same
instances again and check the stored answers.
"""

import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.errors import OpMarkError, UnavailableError
from opmark.core.files import json_text, write_sealed
from opmark.core.schema import load
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.hidden import fresh_problems, hidden_track
from opmark.leaderboards.scoring.placer_process import PlacerProcess
from opmark.leaderboards.scoring.run_record import code_of_placer
from opmark.leaderboards.scoring.scoring_jobs import Runner, ScoringProgress, score_entries
from opmark.leaderboards.scoring.splits import COUNTED, FRESH, HIDDEN, SCHEMA, Counted, SplitScore, split_score
from opmark.leaderboards.scoring.track import REFERENCES, Track, freeze_track, read_references
from opmark.leaderboards.submissions.twins import twin_problems

DRAW = "draw.json"
# The best of OpMark's own placers makes the reference costs of drawn instances.
REFERENCE_PLACERS = ("opmark",)
Progress = Callable[[str, ScoringProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The seed of the instances that an archive is scored on."""

    sha256: str
    seed: str


@dataclass(frozen=True, kw_only=True)
class CountingRun:
    """Scores one archive, called `name`, on what counts for it; its files are kept in `folder`."""

    folder: Path
    name: str
    sha256: str
    runners: Sequence[Runner]
    layers: tuple[str, ...]
    seed: int
    again: bool
    progress: Progress
    notice: Callable[[str], None]

    def run(self, track: Track) -> Counted:
        """The scores on twins and on unseen instances, which are also stored in `counted.json`.

        Hidden instances are used where their seed is known, else instances drawn by the same recipe.
        """
        seed = self._drawn_seed()
        twins = self._half(track, self.folder / "twins", twin_problems(track.problems(), f"{seed}/twins"))
        counted = Counted(sha256=self.sha256, twins=self._score(twins, f"{track.name}, twins"))
        unseen, source = hidden_track(track), HIDDEN
        if unseen is None:
            unseen, source = self._fresh(track, f"{seed}/fresh"), FRESH
        if unseen is not None:
            score = self._score(unseen, f"{track.name}, {source}")
            counted = replace(counted, unseen=score, source=source)
        write_sealed(self.folder / COUNTED, json_text({"schema": SCHEMA, **plain(counted)}))
        return counted

    def score(self, half: Track, label: str) -> None:
        """Run the archive on every problem of `half`. Raises `UnavailableError` where it cannot be run here."""
        _need(
            score_entries(
                half,
                {self.name: self.sha256},
                self.runners,
                seed=self.seed,
                again=self.again,
                layers=self.layers,
                progress=partial(self.progress, label),
            )
        )

    def _drawn_seed(self) -> str:
        """The seed for this archive; another archive of the entry gets a new one, and its old draws are removed."""
        path = self.folder / DRAW
        if path.is_file():
            known = load(path, Draw, schema=SCHEMA, sealed=True)
            if known.sha256 == self.sha256:
                return known.seed
        for old in ("twins", FRESH):
            shutil.rmtree(self.folder / old, ignore_errors=True)
        (self.folder / COUNTED).unlink(missing_ok=True)
        seed = secrets.token_hex(16)
        write_sealed(path, json_text({"schema": SCHEMA, "sha256": self.sha256, "seed": seed}))
        return seed

    def _fresh(self, track: Track, seed: str) -> Track | None:
        try:
            problems = fresh_problems(track, seed)
        except OpMarkError as error:
            self.notice(f"{track.name}: no unseen instances can be drawn here, so only twins count: {error}")
            return None
        return self._half(track, self.folder / FRESH, problems) if problems else None

    def _half(self, track: Track, folder: Path, problems: Sequence[Problem]) -> Track:
        return replace(track, folder=folder, given=_referenced(folder, problems))

    def _score(self, half: Track, label: str) -> SplitScore:
        """The submission's score on drawn instances, relative to reference costs, which are made first."""
        if any(problem.reference is None for problem in half.given):
            with ExitStack() as stack:
                processes = [stack.enter_context(PlacerProcess()) for _ in self.runners]
                codes = {name: code_of_placer(name) for name in REFERENCE_PLACERS}
                _need(score_entries(half, codes, processes, progress=partial(self.progress, f"{label}: references")))
            freeze_track(half)
            half = replace(half, given=_referenced(half.folder, half.given))
        self.score(half, label)
        standings = half.rank()
        return split_score(next(row.results for row in standings.rows if row.name == self.name))


def _need(not_run: Mapping[str, str]) -> None:
    for reason in not_run.values():
        raise UnavailableError(reason)


def _referenced(folder: Path, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    known = read_references(folder / REFERENCES)
    return tuple(replace(problem, reference=known.get(problem.id) or problem.reference) for problem in problems)
