"""The loop of the server that scores the queue, one submission after another, and keeps the site up to date."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError, OpMarkError
from opmark.core.line_reader import LineReader
from opmark.core.reading import parse_json
from opmark.leaderboards.serving.scoring_process import PUBLISH, SCORE
from opmark.leaderboards.serving.submission_queue import QueuedSubmission, SubmissionQueue

LOOKED_AT_EVERY_S = 0.5
# While submissions wait, the site is written after this time at the latest.
SITE_AGE_AT_MOST_S = 600.0
_COMMAND = (sys.executable, "-m", "opmark.leaderboards.serving.scoring_process")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFolders:
    """The tracks, and the server's own folder `state` with its queue, archives, keys of owners and the site."""

    leaderboards: Path
    state: Path

    @property
    def queue(self) -> Path:
        """The file of the queue."""
        return self.state / "queue.sqlite"

    @property
    def site(self) -> Path:
        """The folder of the site."""
        return self.state / "site"

    def archive(self, sha256: str) -> Path:
        """The file of a packed submission."""
        return self.state / "uploads" / f"{sha256}.tar"

    def owner(self, key: str) -> Path:
        """The file of the signing key that belongs to the hash of a key."""
        return self.state / "owners" / f"{key}.pem"


@dataclass(slots=True, kw_only=True)
class ScoringLoop:
    """A thread that scores until `stop`; `progress` is that of the running submission, by its id."""

    folders: ServerFolders
    queue: SubmissionQueue
    jobs: int = 1
    sandbox: str = "bubblewrap"
    trusted: bool = False
    progress: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _wake: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _published_s: float = 0.0
    _stale: bool = True

    def start(self) -> None:
        """Continue with what an earlier server left, and remove archives that nobody needs."""
        self.queue.resume()
        needed = self.queue.unfinished()
        for path in (self.folders.state / "uploads").glob("*.tar"):
            if path.stem not in needed:
                path.unlink(missing_ok=True)
        self._thread = threading.Thread(target=self._run, name="scoring")
        self._thread.start()

    def wake(self) -> None:
        """Something was queued."""
        self._wake.set()

    def stop(self) -> None:
        """End the running job at once; its finished runs are stored, and it is queued again."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.queue.resume()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._step()
            except OpMarkError as error:  # the disk is full, or the queue is locked: later it may work again
                sys.stderr.write(f"{error}\n")
                self._rest()
                with contextlib.suppress(OpMarkError):
                    self.queue.resume()

    def _step(self) -> None:
        """Score the next submission, or write the site, or rest."""
        late = self._stale and time.monotonic() - self._published_s > SITE_AGE_AT_MOST_S and self._published_s
        found = None if late else self.queue.next()
        if found is not None:
            self._score(found)
        elif self._stale:
            self._publish()
        else:
            self._rest()

    def _rest(self) -> None:
        self._wake.wait(LOOKED_AT_EVERY_S * 10)
        self._wake.clear()

    def _score(self, found: QueuedSubmission) -> None:
        job = {
            "do": SCORE,
            "archive": str(self.folders.archive(found.sha256)),
            "sha256": found.sha256,
            "name": found.name,
            "owner": str(self.folders.owner(found.key)),
            "signed_at": int(found.received_s),
            "tracks": found.tracks,
            "jobs": self.jobs,
            "sandbox": self.sandbox,
            "trusted": self.trusted,
        }
        last = self._do(job, found.id)
        self.progress.pop(found.id, None)
        if self._stopping.is_set() and "done" not in last:
            return
        if "done" in last:
            self.queue.scored(found.id, last["done"])
            self._stale = True
        elif "error" in last:
            self.queue.failed(found.id, ". ".join(filter(None, (last["error"], last["hint"]))))
        else:
            self.queue.broke_off(found.id)

    def _publish(self) -> None:
        """Write the site; where that fails (no entry yet), it is tried again after the next submission."""
        self._stale = False
        self._do({"do": PUBLISH, "site": str(self.folders.site)}, "")
        self._published_s = time.monotonic()

    def _do(self, job: Mapping[str, Any], wanted: str) -> dict[str, Any]:
        """The last message of a process that does the job; without a result where it broke off."""
        asked = {
            **job,
            "leaderboards": str(self.folders.leaderboards),
            "state": str(self.folders.state),
        }
        process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdin is not None
        assert process.stdout is not None
        last: dict[str, Any] = {}
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(asked).encode() + b"\n")
                process.stdin.flush()
            lines = LineReader(process.stdout)
            while not self._stopping.is_set():
                line = lines.read(LOOKED_AT_EVERY_S)
                if line is None:
                    continue
                if not line:
                    break
                last = message_in(line)
                if "progress" in last:
                    self.progress[wanted] = last["progress"]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            with contextlib.suppress(BrokenPipeError):  # it ended before it had read the job
                process.stdin.close()
            process.stdout.close()
        return last


def message_in(line: bytes) -> dict[str, Any]:
    """A message of the process; an error where it is none, so that the loop goes on with the next submission."""
    try:
        found = parse_json(line, "the scoring process")
    except ContentError as error:
        return {"error": str(error), "hint": ""}
    return found if isinstance(found, dict) else {"error": "the scoring process sent no message", "hint": ""}
