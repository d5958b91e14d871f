"""The scoring loop without a web server: its process, its failures, and the receipt that a sender sees."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.leaderboards.serving.forked_scorer import fork_scorers
from tests.leaderboards.serving.live_server import upload, workspace_in

from opmark.core.errors import OpMarkError
from opmark.leaderboards.serving.application import UploadDesk
from opmark.leaderboards.serving.scoring_loop import ScoringLoop, ServerFolders, message_in
from opmark.leaderboards.serving.submission_queue import ServerLimits, SubmissionQueue

pytestmark = pytest.mark.timeout(600)
# Number 0 is nobody's parent: the call must not return.
ENDING = """
from opmark.leaderboards.serving.scoring_process import end_with_parent
end_with_parent(parent=0)
"""


@pytest.fixture
def loop(tmp_path: Path) -> ScoringLoop:
    root = workspace_in(tmp_path / "w")
    folders = ServerFolders(leaderboards=root / "leaderboards", state=root / ".serve")
    queue = SubmissionQueue(folders.queue, ServerLimits())
    return ScoringLoop(folders=folders, queue=queue, sandbox="none", trusted=True)


def until(loop: ScoringLoop, wanted: str, state: str) -> None:
    while loop.queue.find(wanted).state != state:
        time.sleep(0.05)


def test_a_scoring_process_that_is_killed_is_tried_again(loop: ScoringLoop, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    wait = Path(f"{runs}.wait-a")
    wait.touch()
    found, _ = UploadDesk(loop).take(upload("mine", runs), wanted=(), key="", address="")
    orphan = loop.folders.archive("0" * 64)
    orphan.write_bytes(b"")
    loop.start()
    try:
        assert not orphan.exists(), "archives that nobody needs are removed"
        while not runs.exists():
            time.sleep(0.05)
        running = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
        scorer = next(child for child in running if any("scoring_process" in word for word in child.cmdline()))
        os.kill(scorer.pid, signal.SIGKILL)
        wait.unlink()
        until(loop, found.id, "scored")
    finally:
        loop.stop()
    assert loop.queue.find(found.id).receipt


def test_a_wrong_archive_fails_with_its_reason(
    loop: ScoringLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork_scorers(monkeypatch)
    desk = UploadDesk(loop)
    found, _ = desk.take(upload("mine", tmp_path / "runs"), wanted=("t",), key="", address="")
    loop.folders.archive(found.sha256).write_bytes(b"damaged")
    loop.start()
    try:
        until(loop, found.id, "failed")
    finally:
        loop.stop()
    assert "was lost or changed since it came" in (desk.state(loop.queue.find(found.id))["error"] or "")
    with pytest.raises(OpMarkError, match="there is no track 'x'"):
        desk.take(upload("other", tmp_path / "runs"), wanted=("x",), key="", address="")


def test_a_process_whose_parent_is_gone_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDING], check=False)
    assert ended.returncode == 1


def test_a_line_that_is_no_message_becomes_an_error() -> None:
    assert message_in(b'{"done": {"rank": 1}}') == {"done": {"rank": 1}}
    for line in (b"Killed", b"[1]", b'{"a": 1, "a": 2}', b'{"cost": NaN}', b"[" * 10_000 + b"]" * 10_000):
        assert message_in(line)["error"]
        assert message_in(line)["hint"] == ""


def test_a_queue_that_cannot_be_used_for_a_while_stops_nothing(
    loop: ScoringLoop, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fork_scorers(monkeypatch)
    found, _ = UploadDesk(loop).take(upload("mine", tmp_path / "runs"), wanted=("t",), key="", address="")
    loop.start()
    try:
        until(loop, found.id, "scored")
        kept = loop.folders.queue.rename(tmp_path / "kept")
        loop.folders.queue.mkdir()
        said = ""
        while "the queue cannot be used: unable to open database file" not in said:
            loop.wake()
            time.sleep(0.05)
            said += capfd.readouterr().err
        loop.folders.queue.rmdir()
        kept.rename(loop.folders.queue)
        later, _ = UploadDesk(loop).take(upload("later", tmp_path / "runs"), wanted=("t",), key="", address="")
        until(loop, later.id, "scored")
    finally:
        loop.stop()
