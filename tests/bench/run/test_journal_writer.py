import json
from pathlib import Path

import pytest

from opmark.bench.run.journal_writer import JournalWriter
from opmark.core.errors import ContentError, MeasurementError, OpMarkError
from opmark.core.measurements.journal import read_records
from opmark.core.measurements.records import Done, Header, NetworkTrial

HEADER = Header(suite="s", suite_id="1", quality="full")


def network(trial: str) -> NetworkTrial:
    return NetworkTrial(trial=trial, target="null-t1", network="n", family="f", graph_id="g", role="training")


def test_a_new_journal_starts_with_its_header(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "j.jsonl"
    with JournalWriter(path, HEADER) as writer:
        writer.append([Done(trial="a", status="ok")])
    records, _ = read_records(path)
    assert records == [HEADER, Done(trial="a", status="ok")]


def test_a_line_cut_short_is_dropped_before_more_is_written(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with JournalWriter(path, HEADER) as writer:
        writer.append([network("a"), Done(trial="a", status="ok")])
    with path.open("a") as stream:
        stream.write('{"type":"done","tri')
    with JournalWriter(path, HEADER) as writer:
        assert set(writer.found.done) == {"a"}
        writer.append([network("b"), Done(trial="b", status="ok")])
    types = [json.loads(line)["type"] for line in path.read_text().splitlines()]
    assert types == ["journal", "network", "done", "network", "done"]


def test_only_one_writes_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with JournalWriter(path, HEADER):
        before = path.read_bytes()
        with pytest.raises(MeasurementError, match="another run is writing this journal"):
            JournalWriter(path, HEADER)
        assert path.read_bytes() == before
    JournalWriter(path, HEADER).close()


def test_a_journal_of_another_suite_or_damaged_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    JournalWriter(path, HEADER).close()
    before = path.read_bytes()
    with pytest.raises(ContentError, match="belongs to suite 's'"):
        JournalWriter(path, Header(suite="other", suite_id="2", quality="full"))
    assert path.read_bytes() == before
    path.write_bytes(before + b"rubbish\n" + before)
    with pytest.raises(ContentError, match="damaged"):
        JournalWriter(path, HEADER)
    path.write_bytes(before)
    JournalWriter(path, HEADER).close()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OpMarkError, match="cannot write"):
        JournalWriter(tmp_path / "file" / "j.jsonl", HEADER)


@pytest.mark.parametrize("content", [b"my notes", b'{"type":"journal","suite":"other', b"\x00" * 50])
def test_a_file_without_a_whole_line_is_kept_unless_it_is_this_journal_begun(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ContentError, match="not a journal"):
        JournalWriter(path, HEADER)
    assert path.read_bytes() == content


def test_a_kill_within_the_first_line_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    JournalWriter(path, HEADER).close()
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        JournalWriter(path, HEADER).close()
        assert path.read_bytes() == whole


def test_another_suites_journal_keeps_even_its_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    JournalWriter(path, HEADER).close()
    torn = path.read_bytes() + b'{"type":"do'
    path.write_bytes(torn)
    with pytest.raises(ContentError, match="belongs to suite 's'"):
        JournalWriter(path, Header(suite="other", suite_id="2", quality="full"))
    assert path.read_bytes() == torn


def test_a_device_is_no_journal() -> None:
    with pytest.raises(OpMarkError, match="no file that a journal"):
        JournalWriter(Path("/dev/null"), HEADER)


def test_a_packed_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl.gz"
    path.write_bytes(b"packed")
    with pytest.raises(OpMarkError, match="is packed: a run cannot add to it"):
        JournalWriter(path, HEADER)
    assert path.read_bytes() == b"packed"
