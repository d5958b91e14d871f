"""HEAD: what a GET of the same address would answer, without its body."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.leaderboards.serving.live_server import workspace_in

from opmark.leaderboards.serving.application import UploadDesk, application
from opmark.leaderboards.serving.scoring_loop import ScoringLoop, ServerFolders
from opmark.leaderboards.serving.submission_queue import ServerLimits, SubmissionQueue


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    folders = ServerFolders(leaderboards=workspace_in(tmp_path / "w") / "leaderboards", state=tmp_path / "state")
    page = folders.site / "t" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>a board</p>")
    loop = ScoringLoop(folders=folders, queue=SubmissionQueue(folders.queue, ServerLimits()))
    return TestClient(application(UploadDesk(loop)), follow_redirects=False)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/api/health", 200),
        ("/api/tracks", 200),
        ("/api/submissions", 200),
        ("/api/openapi.json", 200),
        ("/submit", 200),
        ("/submissions", 200),
        ("/t/", 200),
        ("/t", 307),
        ("/favicon.ico", 204),
        ("/nowhere", 404),
        ("/api/submissions/0", 404),
        ("/api/tracks/t/standings", 404),
    ],
)
def test_head_answers_as_get_does(client: TestClient, path: str, status: int) -> None:
    whole, head = client.get(path), client.head(path)
    assert (whole.status_code, head.status_code) == (status, status)
    assert head.content == b""
    for name in ("content-type", "content-length", "content-security-policy", "location"):
        assert head.headers.get(name) == whole.headers.get(name), name


def test_other_methods_are_refused(client: TestClient) -> None:
    assert client.put("/api/health").status_code == 405
    assert client.delete("/submit").status_code == 405
