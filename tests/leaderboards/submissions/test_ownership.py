"""Owners of entries: a name belongs to a key, and runs of one track at once lose nothing."""

import json
import multiprocessing
import multiprocessing.pool
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.forked_placers import address, fork_placers
from tests.leaderboards.submissions.folders import make, on, program
from tests.leaderboards.submissions.test_submit import track

from opmark.core.errors import SubmissionError
from opmark.core.reading import read_json
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.track import Track, load_track
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.ownership import OWNER, RECEIPT, folder_of, owned
from opmark.leaderboards.submissions.pack import pack
from opmark.leaderboards.submissions.sandbox.choice import Unprotected
from opmark.leaderboards.submissions.signature import own_key, sign
from opmark.leaderboards.submissions.submit import ScoringOptions, submit, submit_signed

__all__ = ["track"]
# Processes of their own, forked from one that has imported everything and begun nothing: see `forked_cluster`.
PROCESSES = multiprocessing.get_context("forkserver")
NOTICE = "notice.txt"


def test_a_folder_of_the_same_name_replaces_nothing(track: Track, tmp_path: Path) -> None:
    key, thief = own_key(tmp_path / "key.pem"), own_key(tmp_path / "thief.pem")
    receipt = submit(program(tmp_path / "one", f"print('''{on('P1')}''')"), [track], Unprotected(), key=key)
    folder = folder_of(track, "mine")
    before = {path: path.read_bytes() for path in track.folder.rglob("*") if path.is_file()}
    with pytest.raises(SubmissionError, match="'mine' belongs to another key"):
        submit(program(tmp_path / "two", f"print('''{on('P2')}''')"), [track], Unprotected(), key=thief)
    assert {path: path.read_bytes() for path in track.folder.rglob("*") if path.is_file()} == before
    stored = json.loads((folder / RECEIPT).read_text())
    assert (stored["sha256"], read_json(folder / OWNER)["public_key"]) == (receipt.sha256, key.public)
    assert len(bytes.fromhex(stored["signature"])) == 64
    again = submit(program(tmp_path / "three", f"print('''{on('P3')}''')"), [track], Unprotected(), key=key)
    assert again.sha256 != receipt.sha256


def test_an_older_archive_cannot_be_handed_in_again(track: Track, tmp_path: Path) -> None:
    key = own_key(tmp_path / "key.pem")
    old = sign("mine", pack(load_submission(program(tmp_path / "old", f"print('''{on('P1')}''')"))), key, signed_at=5)
    new = sign("mine", pack(load_submission(program(tmp_path / "new", f"print('''{on('P2')}''')"))), key, signed_at=6)
    submit_signed(old, [track], Unprotected())
    submit_signed(new, [track], Unprotected())
    with pytest.raises(SubmissionError, match="has a newer submission than this one"):
        submit_signed(old, [track], Unprotected())
    with pytest.raises(SubmissionError, match="does not fit its key"):
        submit_signed(replace(old, signed_at=7), [track], Unprotected())
    with pytest.raises(SubmissionError, match="its files are those of 'mine'"):
        submit_signed(sign("yours", new.archive, key), [track], Unprotected())


def test_a_name_without_a_key_is_not_taken(track: Track, tmp_path: Path) -> None:
    track.store("mine", "a", None)
    with pytest.raises(SubmissionError, match="belongs to no key"):
        submit(make(tmp_path / "s", "x = 1"), [track], Unprotected(), key=own_key(tmp_path / "key.pem"))


def _processes(count: int) -> multiprocessing.pool.Pool:
    return PROCESSES.Pool(count, fork_placers, (address(),))


def _submit(leaderboards: Path, folder: Path, key: Path) -> str:
    """Submit a folder; a notice is written into a file. Returns the error."""

    def hear(sentence: str) -> None:
        (leaderboards / NOTICE).write_text(sentence)

    options = ScoringOptions(notice=hear)
    try:
        submit(folder, [load_track(leaderboards, "t")], Unprotected(), key=own_key(key), options=options)
    except SubmissionError as error:
        return error.message
    return ""


def _score(leaderboards: Path, names: tuple[str, ...]) -> str:
    score_track(load_track(leaderboards, "t"), names)
    return ""


@pytest.mark.usefixtures("forked_cluster")
def test_submits_at_once_lose_nothing(track: Track, tmp_path: Path) -> None:
    """Five processes write one track: four entries of different owners, and OpMark's own placers."""
    names = ["mine-a", "mine-b", "mine-c", "mine-d"]
    folders = [program(tmp_path / name, f"print('''{on('P1')}''')", name=name) for name in names]
    place = track.folder.parent
    jobs = [(_submit, (place, folder, tmp_path / f"{folder.name}.pem")) for folder in folders]
    with _processes(5) as pool:
        waiting = [pool.apply_async(call, arguments) for call, arguments in jobs]
        waiting.append(pool.apply_async(_score, (place, ("heft", "cpop"))))
        assert [one.get() for one in waiting] == [""] * 5
    runs, entries = track.runs(), [*names, "cpop", "heft"]
    assert sorted(runs) == sorted(entries)
    assert {entry: sorted(row) for entry, row in runs.items()} == {entry: ["a", "b"] for entry in entries}
    written = read_json(track.folder / "standings.json")
    assert sorted(row["name"] for row in written["rows"]) == sorted(entries)
    assert all(result["cost"] for row in written["rows"] for result in row["results"] if result["problem"] == "a")
    assert (track.folder / "standings.json").read_bytes() == track.write_standings(track.standings()).read_bytes()


@pytest.mark.usefixtures("forked_cluster")
def test_one_name_at_once_belongs_to_one_key(track: Track, tmp_path: Path) -> None:
    folders = [program(tmp_path / f"s{number}", f"print('''{on('P1')}''')  # {number}") for number in range(3)]
    with _processes(3) as pool:
        calls = [(track.folder.parent, folder, tmp_path / f"{folder.name}.pem") for folder in folders]
        said = sorted(pool.starmap(_submit, calls))
    assert said[0] == ""
    assert all("belongs to another key" in sentence for sentence in said[1:])
    owner = read_json(folder_of(track, "mine") / OWNER)["public_key"]
    assert owner in {own_key(tmp_path / f"s{number}.pem").public for number in range(3)}


@pytest.mark.usefixtures("forked_cluster")
def test_a_second_run_of_an_entry_waits(track: Track, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    signed = sign("mine", b"archive", own_key(key))
    folder = program(tmp_path / "s", f"print('''{on('P1')}''')")
    with _processes(1) as pool:
        with owned(track, signed):
            second = pool.apply_async(_submit, (track.folder.parent, folder, key))
            notice = track.folder.parent / NOTICE
            while not notice.exists() or "mine is being scored already" not in notice.read_text():
                assert not second.ready()
                time.sleep(0.02)
            assert not (folder_of(track, "mine") / RECEIPT).exists()
        assert second.get() == ""
    assert (folder_of(track, "mine") / RECEIPT).is_file()
