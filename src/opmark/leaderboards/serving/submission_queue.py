"""The queue of uploaded submissions, in SQLite: every change of state is one transaction that outlives `kill -9`.

A submission is `queued`, `running`, `scored`, `failed` or `withdrawn`. Keys are stored as hashes, receipts with a
checksum, because SQLite notices no flipped bit.
"""

import contextlib
import hashlib
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.core.checksums import checksum_fits, with_checksum
from opmark.core.errors import ContentError, OpMarkError
from opmark.core.reading import parse_json
from opmark.core.schema import convert
from opmark.core.slug import Slug

QUEUED, RUNNING, SCORED, FAILED, WITHDRAWN = "queued", "running", "scored", "failed", "withdrawn"
_STATES = frozenset({QUEUED, RUNNING, SCORED, FAILED, WITHDRAWN})
HOUR_S, DAY_S = 3600.0, 86400.0
TRIES_AT_MOST = 3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (hash TEXT PRIMARY KEY, made_s REAL NOT NULL, address TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS submissions (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, key TEXT NOT NULL REFERENCES keys (hash),
  name TEXT NOT NULL, sha256 TEXT NOT NULL, tracks TEXT NOT NULL, state TEXT NOT NULL, received_s REAL NOT NULL,
  started_s REAL, ended_s REAL, tries INTEGER NOT NULL DEFAULT 0, receipt TEXT, error TEXT
);
CREATE INDEX IF NOT EXISTS by_state ON submissions (state, number);
CREATE INDEX IF NOT EXISTS by_key ON submissions (key, received_s);
"""


class RefusedError(OpMarkError):
    """A request is refused: `status` is its HTTP status, `wait_s` the seconds after which it may come again."""

    def __init__(self, status: int, message: str, *, hint: str | None = None, wait_s: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.wait_s = wait_s


class _DamagedError(RefusedError):
    """A row of the queue does not hold what was written."""

    def __init__(self, reason: str) -> None:
        super().__init__(500, f"this submission is damaged in the queue: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits per key: uploads in an hour and unfinished submissions; of one address: new keys in a day.

    `waiting` limits the whole queue, `upload_bytes` and `upload_s` one request.
    """

    upload_bytes: int = 16 * 2**20
    upload_s: float = 120.0
    uploads_per_hour: int = 10
    unfinished_per_key: int = 2
    new_keys_per_day: int = 5
    waiting: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedSubmission:
    """A row of the queue; `ahead` counts the submissions that are scored before it."""

    id: str
    key: str
    name: Slug
    sha256: str
    tracks: tuple[str, ...]
    state: str
    received_s: float
    started_s: float | None
    ended_s: float | None
    receipt: Mapping[str, Any] | None
    error: str | None
    ahead: int = 0


class SubmissionQueue:
    """The queue in the file `path`. Several threads and processes may use it."""

    def __init__(self, path: Path, limits: ServerLimits) -> None:
        """Open the queue. Raises `OpMarkError` naming the file where it is damaged or cannot be written."""
        self._path, self.limits = path, limits
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._change() as base:
                for statement in _SCHEMA.split(";"):
                    base.execute(statement)
        except RefusedError as error:
            hint = "restore the folder from a backup, or name another one with --state"
            raise OpMarkError(error.message, where=str(path), hint=hint) from error

    def add(
        self,
        *,
        name: str,
        sha256: str,
        tracks: tuple[str, ...],
        key: str,
        address: str,
        store: Callable[[], None] = lambda: None,
    ) -> tuple[QueuedSubmission, str]:
        """Queue a submission; returns it with the key, which is new where `key` is empty.

        `store` writes the archive once nothing speaks against it, and before the submission is in the queue. The same
        archive under the same key is queued once. Raises `RefusedError` beyond a limit, for an unknown key, or for a
        name of another key.
        """
        now = time.time()
        with self._change() as base:
            owner = self._known(base, key) if key else self._new_key(base, address, now)
            hashed = hash_of(owner)
            wanted = "key = ? AND name = ? AND sha256 = ? AND tracks = ? AND state IN (?, ?, ?)"
            same = base.execute(
                f"SELECT id FROM submissions WHERE {wanted}",  # noqa: S608 (all values are parameters)
                (hashed, name, sha256, json.dumps(tracks), QUEUED, RUNNING, SCORED),
            ).fetchone()
            if same is None:
                self._check(base, hashed, name, now)
                store()
                made = secrets.token_hex(8)
                base.execute(
                    "INSERT INTO submissions (id, key, name, sha256, tracks, state, received_s)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (made, hashed, name, sha256, json.dumps(tracks), QUEUED, now),
                )
        return self.find(made if same is None else same["id"]), owner

    def find(self, wanted: str) -> QueuedSubmission:
        """The submission with that id. Raises `RefusedError`."""
        with self._base() as base:
            row = base.execute("SELECT * FROM submissions WHERE id = ?", (wanted,)).fetchone()
            if row is None:
                raise RefusedError(404, "there is no such submission")
            return _row(base, row)

    def newest(self, most: int = 100) -> list[QueuedSubmission]:
        """The last submissions, newest first, without those that are damaged."""
        found = []
        with self._base() as base:
            for row in base.execute("SELECT * FROM submissions ORDER BY number DESC LIMIT ?", (most,)).fetchall():
                with contextlib.suppress(_DamagedError):
                    found.append(_row(base, row))
        return found

    def withdraw(self, wanted: str, key: str) -> None:
        """Take a submission out of the queue. Raises `RefusedError` unless it waits and belongs to the key."""
        found = self.find(wanted)
        if hash_of(key) != found.key:
            raise RefusedError(403, "this submission belongs to another key")
        with self._change() as base:
            changed = base.execute(
                "UPDATE submissions SET state = ?, ended_s = ? WHERE id = ? AND state = ?",
                (WITHDRAWN, time.time(), wanted, QUEUED),
            ).rowcount
        if not changed:
            raise RefusedError(409, f"it is {found.state}, and only a queued submission can be withdrawn")

    def next(self) -> QueuedSubmission | None:
        """The oldest queued submission, which now runs; None where nothing waits. A damaged one fails."""
        while True:
            with self._change() as base:
                row = base.execute(
                    "SELECT id FROM submissions WHERE state = ? ORDER BY number LIMIT 1", (QUEUED,)
                ).fetchone()
                if row is None:
                    return None
                base.execute(
                    "UPDATE submissions SET state = ?, started_s = ? WHERE id = ?", (RUNNING, time.time(), row["id"])
                )
            try:
                return self.find(row["id"])
            except _DamagedError as error:
                self.failed(row["id"], error.message)

    def scored(self, wanted: str, receipt: Mapping[str, Any]) -> None:
        """Store the receipt of a running submission."""
        self._end(wanted, SCORED, receipt=with_checksum(json.dumps({"receipt": receipt})))

    def failed(self, wanted: str, reason: str) -> None:
        """Store the reason why a running submission cannot be scored."""
        self._end(wanted, FAILED, error=reason)

    def broke_off(self, wanted: str) -> None:
        """Queue a submission again whose scoring process ended by itself; it fails after a few tries."""
        with self._change() as base:
            base.execute("UPDATE submissions SET tries = tries + 1, state = ? WHERE id = ?", (QUEUED, wanted))
            tries = base.execute("SELECT tries FROM submissions WHERE id = ?", (wanted,)).fetchone()["tries"]
        if tries >= TRIES_AT_MOST:
            self.failed(wanted, f"the process that scored it ended {tries} times without a result")

    def unfinished(self) -> set[str]:
        """The hashes of all archives that are still needed."""
        with self._base() as base:
            rows = base.execute("SELECT sha256 FROM submissions WHERE state IN (?, ?)", (QUEUED, RUNNING)).fetchall()
            return {row["sha256"] for row in rows}

    def resume(self) -> int:
        """Queue again what was running when the server ended; returns their number. Finished runs are kept."""
        with self._change() as base:
            return base.execute("UPDATE submissions SET state = ? WHERE state = ?", (QUEUED, RUNNING)).rowcount

    def _end(self, wanted: str, state: str, *, receipt: str | None = None, error: str | None = None) -> None:
        with self._change() as base:
            base.execute(
                "UPDATE submissions SET state = ?, ended_s = ?, receipt = ?, error = ? WHERE id = ?",
                (state, time.time(), receipt, error, wanted),
            )

    def _known(self, base: sqlite3.Connection, key: str) -> str:
        if base.execute("SELECT 1 FROM keys WHERE hash = ?", (hash_of(key),)).fetchone() is None:
            raise RefusedError(401, "this key is not known here", hint="leave the key out to get a new one")
        return key

    def _new_key(self, base: sqlite3.Connection, address: str, now: float) -> str:
        row = base.execute(
            "SELECT COUNT(*) AS n, MIN(made_s) AS first FROM keys WHERE address = ? AND made_s > ?",
            (address, now - DAY_S),
        ).fetchone()
        if row["n"] >= self.limits.new_keys_per_day:
            raise RefusedError(
                429,
                f"this address made {row['n']} keys in a day",
                hint="use one of them: a key is made with the first submission",
                wait_s=row["first"] + DAY_S - now,
            )
        key = secrets.token_urlsafe(24)
        base.execute("INSERT INTO keys VALUES (?, ?, ?)", (hash_of(key), now, address))
        return key

    def _check(self, base: sqlite3.Connection, key: str, name: str, now: float) -> None:
        other = base.execute(
            "SELECT 1 FROM submissions WHERE name = ? AND key != ? AND state IN (?, ?, ?)",
            (name, key, QUEUED, RUNNING, SCORED),
        ).fetchone()
        if other is not None:
            raise RefusedError(409, f"{name!r} belongs to another key", hint="choose another name in submission.yaml")
        open_ones = "SELECT COUNT(*) AS n FROM submissions WHERE state IN (?, ?)"
        mine = base.execute(f"{open_ones} AND key = ?", (QUEUED, RUNNING, key)).fetchone()["n"]
        if mine >= self.limits.unfinished_per_key:
            raise RefusedError(429, f"{mine} submissions of this key are not finished yet", wait_s=60)
        if base.execute(open_ones, (QUEUED, RUNNING)).fetchone()["n"] >= self.limits.waiting:
            raise RefusedError(503, f"{self.limits.waiting} submissions wait already", wait_s=600)
        row = base.execute(
            "SELECT COUNT(*) AS n, MIN(received_s) AS first FROM submissions WHERE key = ? AND received_s > ?",
            (key, now - HOUR_S),
        ).fetchone()
        if row["n"] >= self.limits.uploads_per_hour:
            raise RefusedError(
                429, f"this key sent {row['n']} submissions in an hour", wait_s=row["first"] + HOUR_S - now
            )

    @contextlib.contextmanager
    def _base(self) -> Iterator[sqlite3.Connection]:
        """A connection. Raises `RefusedError` where the file is damaged, locked for long, or cannot be written."""
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as base:
                base.row_factory = sqlite3.Row
                # a damaged text is refused where its row is read, and hides no other row
                base.text_factory = lambda text: text.decode(errors="replace")
                base.execute("PRAGMA journal_mode = WAL")
                base.execute("PRAGMA synchronous = FULL")
                yield base
        except sqlite3.Error as error:
            raise RefusedError(503, f"the queue cannot be used: {error}", hint="try again later", wait_s=60) from error

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One transaction; an exception undoes it."""
        with self._base() as base:
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
            except BaseException:
                base.execute("ROLLBACK")
                raise
            base.execute("COMMIT")


def hash_of(key: str) -> str:
    """The hash under which a key is stored; keys are random, so it needs no salt."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _row(base: sqlite3.Connection, row: sqlite3.Row) -> QueuedSubmission:
    ahead = 0
    if row["state"] == QUEUED:
        ahead = base.execute(
            "SELECT COUNT(*) AS n FROM submissions WHERE state = ? OR (state = ? AND number < ?)",
            (RUNNING, QUEUED, row["number"]),
        ).fetchone()["n"]
    columns = ("id", "key", "name", "sha256", "state", "received_s", "started_s", "ended_s", "error")
    try:
        content = {name: row[name] for name in columns} | {"ahead": ahead, "tracks": _parsed(row, "tracks")}
        content["receipt"] = None if row["receipt"] is None else _receipt(row)
        if content["state"] not in _STATES:
            raise ContentError(f"no submission is {content['state']!r}")
        return convert(content, QueuedSubmission, where="")
    except ContentError as error:
        raise _DamagedError(error.message) from error


def _parsed(row: sqlite3.Row, column: str) -> Any:
    """The JSON in a column, which somebody may have edited. Raises `ContentError`."""
    return parse_json(str(row[column]).encode(), column)


def _receipt(row: sqlite3.Row) -> Any:
    """The receipt, if its checksum fits. Raises `ContentError`."""
    if not checksum_fits(str(row["receipt"]).encode()):
        raise ContentError("its receipt does not fit its checksum")
    return _parsed(row, "receipt")["receipt"]
