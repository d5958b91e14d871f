"""A real server and a real client: uploads, limits, `kill -9` in the middle, and a sound end."""

import io
import json
import signal
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.leaderboards.serving.live_server import PROBLEMS, LiveServer, lives, upload, workspace_in

from opmark.core.reading import read_json

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    yield from running(LiveServer(workspace_in(tmp_path / "w"), options=("--keys-per-day", "9")))


@pytest.fixture
def real_server(tmp_path: Path) -> Iterator[LiveServer]:
    """One that real commands start, each process of it too."""
    yield from running(LiveServer(workspace_in(tmp_path / "w"), real=True))


def running(found: LiveServer) -> Iterator[LiveServer]:
    found.start()
    yield found
    found.end(signal.SIGKILL)
    found.client.close()


def ran(runs: Path) -> list[str]:
    return runs.read_text().split() if runs.exists() else []


def stored(names: Iterable[str]) -> list[str]:
    """The track's own problems among those that ran."""
    return sorted(name for name in names if not name.startswith("twin-"))


def twins(names: Iterable[str]) -> list[str]:
    """The drawn twins among those that ran."""
    return sorted(name for name in names if name.startswith("twin-"))


def board(server: LiveServer) -> list[str]:
    path = server.root / "leaderboards" / "t" / "standings.json"
    return [row["name"] for row in read_json(path)["rows"]]


def test_a_submission_is_queued_scored_and_ranked(server: LiveServer, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    answer = server.send(upload("mine", runs))
    assert answer.status_code == 202, answer.text
    queued = answer.json()
    assert queued["state"] in {"queued", "running"}
    assert len(queued["key"]) >= 32
    assert answer.headers["location"] == f"/api/submissions/{queued['id']}"
    found = server.until(queued["id"], "scored")
    placed = found["receipt"]["tracks"][0]
    assert (placed["track"], placed["rank"], placed["entries"], placed["rank_now"]) == ("t", 1, 1, 1)
    assert [one["problem"] for one in placed["problems"]] == ["a", "b", "c"], "validation problems tell nothing"
    assert all(one["cost_ns"] for one in placed["problems"])
    assert "key" not in found
    assert stored(ran(runs)) == sorted(PROBLEMS)
    assert len(twins(ran(runs))) == len(PROBLEMS)
    assert board(server) == ["mine"]
    # the same again changes nothing; a new archive of the same name needs the key
    again = server.send(upload("mine", runs), queued["key"])
    assert (again.json()["id"], again.json()["state"]) == (queued["id"], "scored")
    stolen = server.send(upload("mine", runs, more="#"))
    assert (stolen.status_code, "belongs to another key" in stolen.json()["error"]) == (409, True)
    better = server.send(upload("mine", runs, more="#"), queued["key"]).json()
    server.until(better["id"], "scored")
    assert board(server) == ["mine"]
    # the site follows, with links to the form
    server.wait(lambda: "mine" in server.client.get(f"{server.url}/t/").text)
    start = server.client.get(f"{server.url}/")
    assert 'href="/submit"' in start.text
    assert "default-src 'none'" in start.headers["content-security-policy"]
    assert server.client.get(f"{server.url}/api/tracks/t/standings").json()["rows"][0]["name"] == "mine"


def test_kill_9_in_the_middle_loses_nothing_and_scores_nothing_twice(server: LiveServer, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    wait = Path(f"{runs}.wait-c")
    wait.touch()
    first = server.send(upload("first", runs)).json()
    second = server.send(upload("second", tmp_path / "other")).json()
    server.wait(lambda: "c" in ran(runs))
    server.wait(lambda: (server.state(first["id"])["progress"] or {}).get("done") == 2)
    assert server.process is not None
    inner = [child.pid for child in psutil.Process(server.process.pid).children(recursive=True)]
    assert inner
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    server.process = None
    scorers = inner[:1]
    server.wait(lambda: not any(map(lives, scorers)))
    wait.unlink()
    server.start()
    found = server.until(first["id"], "scored")
    assert found["receipt"]["tracks"][0]["entries"] == 1
    assert server.until(second["id"], "scored")["receipt"]["tracks"][0]["entries"] == 2
    assert sorted(board(server)) == ["first", "second"]
    assert stored(set(ran(runs))) == sorted(PROBLEMS)
    assert len(set(twins(ran(runs)))) == len(PROBLEMS)
    assert ran(runs).count("d") == 1
    assert stored(ran(tmp_path / "other")) == sorted(PROBLEMS), "the one that waited ran once"
    assert len(twins(ran(tmp_path / "other"))) == len(PROBLEMS)
    records = server.root / "leaderboards" / "t" / "runs.json.gz"
    assert {name: sorted(row) for name, row in read_json(records)["runs"].items()} == {
        "first": sorted(PROBLEMS),
        "second": sorted(PROBLEMS),
    }


def test_sigterm_ends_the_server_soundly(real_server: LiveServer, tmp_path: Path) -> None:
    server = real_server
    runs = tmp_path / "runs"
    wait = Path(f"{runs}.wait-b")
    wait.touch()
    sent = server.send(upload("mine", runs)).json()
    server.wait(lambda: "b" in ran(runs))
    assert server.process is not None
    inner = [child.pid for child in psutil.Process(server.process.pid).children(recursive=True)]
    assert server.end(signal.SIGTERM) in {0, -signal.SIGTERM}
    assert not lives(inner[0]), "the process that scored has ended"
    server.process = None
    wait.unlink()
    server.start()
    assert server.until(sent["id"], "scored")["state"] == "scored"
    assert board(server) == ["mine"]


def test_requests_that_are_wrong_get_one_clear_sentence(server: LiveServer, tmp_path: Path) -> None:
    good = upload("mine", tmp_path / "runs")

    def refused(content: bytes, key: str = "", **query: str) -> tuple[int, str]:
        answer = server.send(content, key, **query)
        assert answer.headers["content-type"] == "application/json"
        text = json.dumps(answer.json())
        assert str(tmp_path) not in text
        assert "/tmp" not in text
        return answer.status_code, answer.json()["error"]

    assert refused(b"nonsense") == (422, "the upload is neither a tar.gz nor a zip file")
    assert refused(good, track="nowhere") == (422, "there is no track 'nowhere'")
    assert refused(good, "guessed") == (401, "this key is not known here")
    assert refused(b"\x1f\x8b" + bytes(17 << 20)) == (413, "the upload is larger than 16 MiB")
    bare = io.BytesIO()
    with zipfile.ZipFile(bare, "w") as archive:
        archive.writestr("submission.yaml", "schema: 1\nname: Mine\ntitle: T\nauthors: []\nlicense: MIT\n")
    status, sentence = refused(bare.getvalue())
    assert status == 422
    assert all(word in sentence for word in ("authors: name at least one", "placer.py"))
    client, url = server.client, server.url
    assert client.get(f"{url}/api/submissions/0").json()["error"] == "there is no such submission"
    assert client.get(f"{url}/api/tracks/x/standings").status_code == 404
    assert client.get(f"{url}/api/tracks/t/standings").json()["error"] == "this track has no entry yet"
    assert client.get(f"{url}/../../etc/passwd").status_code == 404
    assert client.get(f"{url}/%2e%2e/queue.sqlite").status_code == 404
    assert client.post(f"{url}/submit", data={"key": "x"}, files={"other": b"1"}).status_code == 400
    assert server.state("0") == {"error": "there is no such submission", "hint": ""}
    assert server.client.get(f"{url}/api/submissions").json() == []


def test_a_queued_submission_is_withdrawn_and_limits_hold(server: LiveServer, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    wait = Path(f"{runs}.wait-a")
    wait.touch()
    first = server.send(upload("one", runs)).json()
    server.until(first["id"], "running")
    second = server.send(upload("two", runs), first["key"]).json()
    assert (second["state"], second["ahead"], "key" in second) == ("queued", 1, False)
    third = server.send(upload("three", runs), first["key"])
    assert (third.status_code, third.headers["retry-after"]) == (429, "60")
    address = f"{server.url}/api/submissions/{second['id']}"
    assert server.client.delete(address).status_code == 403
    assert server.client.delete(address, headers={"Authorization": "Basic x"}).status_code == 401
    gone = server.client.delete(address, headers={"Authorization": f"Bearer {first['key']}"})
    assert gone.json()["state"] == "withdrawn"
    wait.unlink()
    server.until(first["id"], "scored")
    assert board(server) == ["one"]


def test_two_servers_cannot_share_a_folder(server: LiveServer) -> None:
    other = LiveServer(server.root)
    with pytest.raises(AssertionError, match="the server has ended"):
        other.start()
    assert other.end() == 2
    other.client.close()
