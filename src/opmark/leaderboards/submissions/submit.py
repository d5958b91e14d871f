"""Submit a folder: pack and sign it, run the packed files on the instances of its tracks, and rank the answers."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress
from opmark.leaderboards.scoring.splits import Counted, Splits
from opmark.leaderboards.scoring.standings import Row
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.submissions.counting import CountingRun
from opmark.leaderboards.submissions.manifest import Submission, load_submission
from opmark.leaderboards.submissions.ownership import folder_of, keep, owned
from opmark.leaderboards.submissions.pack import digest, pack, unpacked
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox.choice import Sandbox
from opmark.leaderboards.submissions.signature import SignedSubmission, SubmitterKey, sign, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOptions:
    """Settings of a scoring run. Finished runs of the same archive are not repeated unless `again`.

    `progress` hears a track and its steps, `notice` a sentence where another run must end first.
    """

    jobs: int = 1
    seed: int = 0
    again: bool = False
    progress: Callable[[str, ScoringProgress], None] = lambda _track, _progress: None
    notice: Callable[[str], None] = lambda _sentence: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A submission's place on a track, by the splits that count; the results in `row` are those on stored instances."""

    track: str
    row: Row
    entries: int
    counted: Counted
    splits: Splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The name and hash of a submission, its owner's public key, the sandbox's protections, and its places."""

    name: str
    sha256: str
    public_key: str
    layers: tuple[str, ...]
    placed: tuple[Placed, ...]


def submit(
    folder: Path,
    tracks: Sequence[Track],
    sandbox: Sandbox,
    *,
    key: SubmitterKey,
    options: ScoringOptions | None = None,
) -> Receipt:
    """Sign the submission in `folder` with `key`, and do as `submit_signed` does.

    Raises `SubmissionError` also for a folder that is not a valid submission.
    """
    given = load_submission(folder)
    _check_tracks(given, tracks)
    signed = sign(given.manifest.name, pack(given), key)
    return submit_signed(signed, tracks, sandbox, options=options)


def submit_signed(
    signed: SignedSubmission, tracks: Sequence[Track], sandbox: Sandbox, *, options: ScoringOptions | None = None
) -> Receipt:
    """Score a signed submission on `tracks`, and store its archive, answers and standings there.

    Raises `SubmissionError` for a wrong signature, a name that belongs to another key, or a submission that
    is not made for a track.
    """
    verify(signed)
    options = options or ScoringOptions()
    with unpacked(signed.archive) as submission:
        name = submission.manifest.name
        if name != signed.name:
            raise SubmissionError(f"its files are those of {name!r}", where=signed.name)
        _check_tracks(submission, tracks)
        hidden = sandbox.hiding(*(track.leaderboards.parent for track in tracks), *(track.folder for track in tracks))
        scorer = _Scorer(signed, submission, hidden, options)
        placed = []
        for track in tracks:
            waits = partial(options.notice, f"{track.name}: {name} is being scored already; waiting for its end")
            with owned(track, signed, waiting=waits):
                placed.append(scorer.placed(track))
                keep(track, signed, submission.manifest, scorer.layers)
    return Receipt(
        name=name,
        sha256=digest(signed.archive),
        public_key=signed.public_key,
        layers=scorer.layers,
        placed=tuple(placed),
    )


class _Scorer:
    """Scores one unpacked submission on tracks."""

    def __init__(
        self, signed: SignedSubmission, submission: Submission, sandbox: Sandbox, options: ScoringOptions
    ) -> None:
        processors = sorted(os.sched_getaffinity(0))
        self._runners = [
            SubmissionRunner(submission=submission, sandbox=sandbox, processor=processors[job % len(processors)])
            for job in range(options.jobs)
        ]
        self._name, self._sha256 = signed.name, digest(signed.archive)
        self._options = options
        self.layers = sandbox.layers(self._runners[0].limits)

    def placed(self, track: Track) -> Placed:
        """The submission's place on a track: first the instances that count, then the stored ones."""
        run = CountingRun(
            folder=folder_of(track, self._name),
            name=self._name,
            sha256=self._sha256,
            runners=self._runners,
            layers=self.layers,
            seed=self._options.seed,
            again=self._options.again,
            progress=self._options.progress,
            notice=self._options.notice,
        )
        counted = run.run(track)
        run.score(track, f"{track.name}, stored instances")
        standings = track.rank()
        row = next(row for row in standings.rows if row.name == self._name)
        results = tuple(replace(result, reason=standings.reason(self._name, result)) for result in row.results)
        return Placed(
            track=track.name,
            row=replace(row, results=results),
            entries=len(standings.rows),
            counted=counted,
            splits=standings.splits[self._name],
        )


def _check_tracks(submission: Submission, tracks: Sequence[Track]) -> None:
    wanted = submission.manifest.tracks
    foreign = [track.name for track in tracks if wanted and track.name not in wanted]
    if foreign:
        raise SubmissionError(
            f"{submission.manifest.name!r} is made for {', '.join(wanted)}, not for {foreign[0]}",
            where=str(submission.folder),
        )
