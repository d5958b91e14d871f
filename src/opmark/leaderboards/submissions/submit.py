"""Submit a folder: pack it, run the packed files on every instance of its tracks, and rank the answers."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.core.files import write_bytes, write_json
from opmark.leaderboards.scoring.hidden import hidden_track
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress, score_entries
from opmark.leaderboards.scoring.standings import Row
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.submissions.manifest import Submission, load_submission
from opmark.leaderboards.submissions.pack import ARCHIVE, digest, pack, unpacked
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox.choice import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A submission's place on a track; `hidden` is its row on hidden instances, where their seed is known."""

    track: str
    row: Row
    entries: int
    hidden: Row | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The name and hash of a submission, the sandbox's protections, and its place on each track."""

    name: str
    sha256: str
    layers: tuple[str, ...]
    placed: tuple[Placed, ...]


def submit(
    folder: Path,
    tracks: Sequence[Track],
    sandbox: Sandbox,
    *,
    jobs: int = 1,
    seed: int = 0,
    again: bool = False,
    progress: Callable[[str, ScoringProgress], None] = lambda _track, _progress: None,
) -> Receipt:
    """Score the submission in `folder` on `tracks`, and store its archive, answers and standings there.

    Finished runs of the same archive are not repeated unless `again`. Raises `SubmissionError` for a folder that is not
    a valid submission or is not made for a track.
    """
    given = load_submission(folder)
    _check_tracks(given, tracks)
    archive = pack(given)
    processors = sorted(os.sched_getaffinity(0))
    with unpacked(archive) as submission:
        name = submission.manifest.name
        runners = [
            SubmissionRunner(submission=submission, sandbox=sandbox, processor=processors[job % len(processors)])
            for job in range(jobs)
        ]
        layers = sandbox.layers(runners[0].limits)

        def scored(half: Track, label: str) -> tuple[Row, int]:
            show = partial(progress, label)
            codes = {name: digest(archive)}
            score_entries(half, codes, runners, seed=seed, again=again, layers=layers, progress=show)
            standings = half.standings()
            half.write_standings(standings)
            row = next(row for row in standings.rows if row.name == name)
            results = tuple(replace(result, reason=standings.reason(name, result)) for result in row.results)
            return replace(row, results=results), len(standings.rows)

        placed = []
        for track in tracks:
            half = hidden_track(track)
            row, entries = scored(track, track.name)
            hidden = None if half is None else scored(half, f"{track.name}, hidden")[0]
            _keep(track, submission, archive, layers)
            placed.append(Placed(track=track.name, row=row, entries=entries, hidden=hidden))
    return Receipt(name=name, sha256=digest(archive), layers=layers, placed=tuple(placed))


def _keep(track: Track, submission: Submission, archive: bytes, layers: tuple[str, ...]) -> None:
    """Write the archive and its receipt to `submissions/<name>/` of a track."""
    folder = track.folder / "submissions" / submission.manifest.name
    write_bytes(folder / ARCHIVE, archive)
    content = {"schema": 1, "sha256": digest(archive), "manifest": submission.manifest, "layers": layers}
    write_json(folder / "receipt.json", content)


def _check_tracks(submission: Submission, tracks: Sequence[Track]) -> None:
    wanted = submission.manifest.tracks
    foreign = [track.name for track in tracks if wanted and track.name not in wanted]
    if foreign:
        raise SubmissionError(
            f"{submission.manifest.name!r} is made for {', '.join(wanted)}, not for {foreign[0]}",
            where=str(submission.folder),
        )
