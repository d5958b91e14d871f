"""The queue: its order, its limits, its keys, and what is left of it after a crash."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from opmark.core.errors import OpMarkError
from opmark.leaderboards.serving import submission_queue
from opmark.leaderboards.serving.submission_queue import (
    FAILED,
    QUEUED,
    RUNNING,
    SCORED,
    WITHDRAWN,
    QueuedSubmission,
    RefusedError,
    ServerLimits,
    SubmissionQueue,
    hash_of,
)


def queue_in(folder: Path, **limits: int) -> SubmissionQueue:
    return SubmissionQueue(folder / "queue.sqlite", ServerLimits(**limits))


def add(queue: SubmissionQueue, name: str, key: str = "", content: str = "1") -> tuple[QueuedSubmission, str]:
    return queue.add(name=name, sha256=name + content, tracks=("t",), key=key, address="192.0.2.1")


def test_submissions_are_scored_in_order_and_keep_their_result(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    first, key = add(queue, "a")
    second, _ = add(queue, "b")
    assert (first.state, first.ahead, second.ahead) == (QUEUED, 0, 1)
    assert key not in (tmp_path / "queue.sqlite").read_bytes().decode("latin-1"), "only its hash is stored"
    running = queue.next()
    assert running is not None
    assert (running.id, running.state, queue.find(second.id).ahead) == (first.id, RUNNING, 1)
    queue.scored(first.id, {"tracks": []})
    assert queue.find(first.id).receipt == {"tracks": []}
    assert queue.next() is not None
    queue.failed(second.id, "it broke")
    assert (queue.find(second.id).state, queue.find(second.id).error) == (FAILED, "it broke")
    assert queue.next() is None
    assert [row.name for row in queue.newest()] == ["b", "a"]


def test_what_was_running_is_queued_again_by_the_next_server(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    first, _ = add(queue, "a")
    add(queue, "b")
    queue.next()
    other = queue_in(tmp_path)
    assert other.resume() == 1
    assert other.unfinished() == {"a1", "b1"}
    again = other.next()
    assert again is not None
    assert again.id == first.id, "it keeps its place"


def test_the_same_upload_is_queued_once(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    stored: list[str] = []
    first, key = add(queue, "a")
    again, _ = queue.add(
        name="a", sha256="a1", tracks=("t",), key=key, address="", store=lambda: stored.append("archive")
    )
    assert (again.id, stored) == (first.id, [])
    queue.next()
    queue.failed(first.id, "no")
    later, _ = add(queue, "a", key)
    assert later.id != first.id, "a failed one may be tried again"


def test_a_failed_write_leaves_nothing_in_the_queue(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)

    def full() -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        queue.add(name="a", sha256="1", tracks=("t",), key="", address="x", store=full)
    assert queue.newest() == []


def test_limits_of_a_key_an_address_and_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queue_in(tmp_path, uploads_per_hour=3, unfinished_per_key=2, new_keys_per_day=2, waiting=4)
    _, key = add(queue, "a")
    add(queue, "b", key)
    with pytest.raises(RefusedError, match="2 submissions of this key are not finished yet") as caught:
        add(queue, "c", key)
    assert (caught.value.status, caught.value.wait_s) == (429, 60)
    for _ in range(2):
        found = queue.next()
        assert found is not None
        queue.scored(found.id, {})
    add(queue, "c", key)
    with pytest.raises(RefusedError, match="this key sent 3 submissions in an hour") as caught:
        add(queue, "d", key)
    assert 3590 < (caught.value.wait_s or 0) <= 3600
    _, other = add(queue, "x")
    with pytest.raises(RefusedError, match="this address made 2 keys in a day"):
        add(queue, "y")
    add(queue, "z", other)
    now = submission_queue.time.time()
    monkeypatch.setattr(submission_queue.time, "time", lambda: now + 3700)
    add(queue, "d", key)
    monkeypatch.setattr(submission_queue.time, "time", lambda: now + 90000)
    with pytest.raises(RefusedError, match="4 submissions wait already") as caught:
        add(queue, "v")
    assert caught.value.status == 503


def test_names_belong_to_keys(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    first, key = add(queue, "a")
    with pytest.raises(RefusedError, match="'a' belongs to another key") as caught:
        add(queue, "a", content="2")
    assert caught.value.status == 409
    with pytest.raises(RefusedError, match="this key is not known here") as caught:
        add(queue, "b", "guessed")
    assert caught.value.status == 401
    with pytest.raises(RefusedError, match="belongs to another key"):
        queue.withdraw(first.id, "guessed")
    queue.withdraw(first.id, key)
    assert queue.find(first.id).state == WITHDRAWN
    with pytest.raises(RefusedError, match="it is withdrawn"):
        queue.withdraw(first.id, key)
    add(queue, "a", content="2")
    with pytest.raises(RefusedError, match="there is no such submission"):
        queue.find("0")
    assert first.key == hash_of(key)


def test_a_submission_that_ends_its_process_fails_after_a_few_tries(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    first, _ = add(queue, "a")
    for _ in range(3):
        assert queue.find(first.id).state == QUEUED
        queue.next()
        queue.broke_off(first.id)
    assert queue.find(first.id).state == FAILED
    assert "ended 3 times" in (queue.find(first.id).error or "")
    assert SCORED not in {row.state for row in queue.newest()}


def test_a_file_that_is_no_queue_is_named(tmp_path: Path) -> None:
    (tmp_path / "queue.sqlite").write_bytes(b"something else" * 500)
    with pytest.raises(OpMarkError, match=r"queue\.sqlite: the queue cannot be used: file is not a database") as caught:
        queue_in(tmp_path)
    assert "--state" in str(caught.value.hint)


def changed(folder: Path, column: str, value: object) -> None:
    with contextlib.closing(sqlite3.connect(folder / "queue.sqlite", isolation_level=None)) as base:
        base.execute(f"UPDATE submissions SET {column} = ?", (value,))


def test_a_changed_receipt_is_refused(tmp_path: Path) -> None:
    queue = queue_in(tmp_path)
    found, _ = add(queue, "a")
    queue.next()
    queue.scored(found.id, {"tracks": [{"rank": 12}]})
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.sqlite")) as base:
        (stored,) = base.execute("SELECT receipt FROM submissions").fetchone()
    for text in (stored.replace("12", "13"), stored[:-1], json.dumps({"receipt": {}}), "", b"\xff", 7):
        assert text != stored
        changed(tmp_path, "receipt", text)
        with pytest.raises(RefusedError, match="this submission is damaged in the queue") as caught:
            queue.find(found.id)
        assert caught.value.status == 500
        assert queue.newest() == []
    changed(tmp_path, "receipt", stored)
    assert queue.find(found.id).receipt == {"tracks": [{"rank": 12}]}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tracks", '["t"'),
        ("tracks", '"t"'),
        ("name", b"\x05"),
        ("name", "a\ufffd"),
        ("sha256", b"\x00"),
        ("received_s", "x"),
    ],
)
def test_a_damaged_submission_fails_and_is_in_nobodys_way(tmp_path: Path, column: str, value: object) -> None:
    queue = queue_in(tmp_path)
    first, _ = add(queue, "a")
    changed(tmp_path, column, value)
    second, _ = add(queue, "b")
    found = queue.next()
    assert found is not None
    assert found.id == second.id
    assert [row.name for row in queue.newest()] == ["b"]
    with pytest.raises(RefusedError, match="damaged in the queue"):
        queue.find(first.id)
    assert queue.next() is None
