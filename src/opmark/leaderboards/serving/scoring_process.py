"""The process that scores one submission of the queue, or writes the site: it reads a job and writes JSON lines.

    python -m opmark.leaderboards.serving.scoring_process

It ends when its server ends, and holds a lock, so that never two of them score for one server.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError, OpMarkError
from opmark.core.file_lock import locked
from opmark.core.reading import LARGE_BYTES, parse_json, read_bytes
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress
from opmark.leaderboards.scoring.track import SPLIT_FOLDERS, Track, load_track, problem_name
from opmark.leaderboards.submissions.pack import digest
from opmark.leaderboards.submissions.sandbox.choice import sandbox
from opmark.leaderboards.submissions.signature import own_key, sign
from opmark.leaderboards.submissions.submit import Placed, Receipt, ScoringOptions, submit_signed

PUBLISH, SCORE = "publish", "score"
# Of Linux: the signal that a process gets when the thread that started it ends.
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Do the job on standard input; the last line is its receipt or its error."""
    parent = os.getppid()
    end_with_parent(parent)
    job: dict[str, Any] = parse_json(sys.stdin.buffer.readline(), "the job")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: Mapping[str, Any]) -> None:
        try:
            answers.write(json.dumps(message, separators=(",", ":")) + "\n")
            answers.flush()
        except BrokenPipeError:  # the server has just ended
            os._exit(1)

    try:
        with locked(Path(job["state"]) / "scoring.lock"):
            if os.getppid() != parent:
                return 1
            say({"done": _published(job) if job["do"] == PUBLISH else _receipt(job, say)})
    except OpMarkError as error:
        say({"error": str(error), "hint": error.hint or ""})
    return 0


def end_with_parent(parent: int) -> None:
    """Be killed when the server ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


def _published(job: Mapping[str, Any]) -> str:
    from opmark.leaderboards.site.publishing import publish_tracks

    return str(publish_tracks(Path(job["leaderboards"]), Path(job["site"]))[0])


def _receipt(job: Mapping[str, Any], say: Any) -> dict[str, Any]:
    tracks = [load_track(Path(job["leaderboards"]), name) for name in job["tracks"]]
    key = own_key(Path(job["owner"]))
    signed = sign(job["name"], _archive(job), key, signed_at=job["signed_at"])

    def progress(label: str, step: ScoringProgress) -> None:
        say({"progress": {"on": label, "done": step.done, "total": step.total, "left_s": step.left_s}})

    chosen = sandbox(job["sandbox"], trusted=job["trusted"], private=(Path(job["state"]),))
    receipt = submit_signed(signed, tracks, chosen, options=ScoringOptions(jobs=job["jobs"], progress=progress))
    return public_receipt(receipt, tracks)


def _archive(job: Mapping[str, Any]) -> bytes:
    """The upload as it was queued. Raises `OpMarkError` where its file was changed since."""
    try:
        content = read_bytes(Path(job["archive"]), at_most=LARGE_BYTES)
    except ContentError:  # its path is the server's and says nothing to the sender
        content = b""
    if digest(content) != job["sha256"]:
        raise OpMarkError("the stored upload was lost or changed since it came", hint="send it again")
    return content


def public_receipt(receipt: Receipt, tracks: list[Track]) -> dict[str, Any]:
    """The receipt as its owner sees it: costs and reasons of public problems, one score of twins and of hidden ones.

    What a submission prints on problems that are not public stays here, so that it cannot tell them.
    """
    public = {
        track.name: {problem_name(path) for path in track.problem_paths() if _is_public(path)} for track in tracks
    }
    return {
        "name": receipt.name,
        "sha256": receipt.sha256,
        "public_key": receipt.public_key,
        "layers": list(receipt.layers),
        "tracks": [_placed(placed, public[placed.track]) for placed in receipt.placed],
    }


def _placed(placed: Placed, public: set[str]) -> dict[str, Any]:
    row = placed.row
    return {
        "track": placed.track,
        "rank": row.rank,
        "entries": placed.entries,
        "score": row.score,
        "low": row.low,
        "high": row.high,
        "twins_score": placed.splits.twins,
        "hidden_score": placed.splits.hidden,
        "problems": [
            {"problem": one.problem, "cost_ns": one.cost, "quality": one.quality, "reason": one.reason}
            for one in row.results
            if one.problem in public
        ],
    }


def _is_public(path: Path) -> bool:
    return path.parent.name == SPLIT_FOLDERS["public"]


if __name__ == "__main__":
    sys.exit(main())
