"""Hand a submission in: pack it, run what was packed on every instance of its tracks, and rank it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.core.files import write_bytes, write_json
from opmark.leaderboards.scoring.hidden import hidden_track
from opmark.leaderboards.scoring.scoring_jobs import Progress, score_entries
from opmark.leaderboards.scoring.standings import Row
from opmark.leaderboards.scoring.track import Track
from opmark.leaderboards.submissions.manifest import Submission, load_submission
from opmark.leaderboards.submissions.pack import ARCHIVE, digest, pack, unpacked
from opmark.leaderboards.submissions.runner import Contestant
from opmark.leaderboards.submissions.sandbox.choice import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a submission stands on a track; `hidden` is its row among hidden instances, where their seed is known."""

    track: str
    row: Row
    entries: int
    hidden: Row | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was handed in, what held it back while it ran, and where it stands."""

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
    progress: Callable[[str, Progress], None] = lambda _track, _progress: None,
) -> Receipt:
    """Score a folder on `tracks` and keep its archive, answers and standings row there.

    Runs of the very same archive that were finished before are kept. Raises `SubmissionError` for a folder that
    cannot be handed in or is not made for a track.
    """
    given = load_submission(folder)
    _check_tracks(given, tracks)
    archive = pack(given)
    processors = sorted(os.sched_getaffinity(0))
    with unpacked(archive) as submission:
        name = submission.manifest.name
        contestants = [
            Contestant(submission=submission, sandbox=sandbox, processor=processors[job % len(processors)])
            for job in range(jobs)
        ]
        layers = sandbox.layers(contestants[0].limits)
        placed = []
        for track in tracks:
            rows = []
            for half in (track, hidden_track(track)):
                if half is None:
                    continue
                score_entries(
                    half,
                    {name: digest(archive)},
                    contestants,
                    seed=seed,
                    again=again,
                    layers=layers,
                    progress=partial(progress, track.name if half is track else f"{track.name}, hidden"),
                )
                standings = half.standings()
                half.write_standings(standings)
                row = next(row for row in standings.rows if row.name == name)
                results = tuple(replace(result, reason=standings.reason(name, result)) for result in row.results)
                rows.append((replace(row, results=results), len(standings.rows)))
            _keep(track, submission, archive, layers)
            hidden = rows[1][0] if len(rows) > 1 else None
            placed.append(Placed(track=track.name, row=rows[0][0], entries=rows[0][1], hidden=hidden))
    return Receipt(name=name, sha256=digest(archive), layers=layers, placed=tuple(placed))


def _keep(track: Track, submission: Submission, archive: bytes, layers: tuple[str, ...]) -> None:
    """`submissions/<name>/` of a track: what ran, and what it says about itself."""
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
