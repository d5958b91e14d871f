import dataclasses
from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.core.hardware.target import Target
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.journal import calm_of, read_journal
from opmark.core.measurements.lines import line_of
from opmark.core.measurements.records import (
    Block,
    Done,
    Header,
    NetworkTrial,
    Overhead,
    Record,
    Sentinels,
    Session,
)

TARGET = Target(device="d", backend="null")
HEADER = Header(suite="s", suite_id="1", quality="full")
SESSION = Session(environment=Environment(device="d", checked={"cpu": "x"}), targets=(TARGET,))


def block(number: int, ns: float = 100.0) -> Block:
    return Block(
        trial="n",
        label="network",
        process=0,
        round=number,
        construction="single",
        copies=1,
        base_copies=0,
        calls=1,
        ns=(ns, ns),
        clean="11",
    )


TRIAL = NetworkTrial(trial="n", target="null-t1", network="net", family="f", graph_id="g", role="training")
RECORDS: list[Record] = [
    HEADER,
    SESSION,
    Overhead(target="null-t1", process=0, ns=1.0),
    Overhead(target="null-t1", process=1, ns=3.0),
    TRIAL,
    block(0),
    Sentinels(round=0, target="null-t1", ns={"compute": 1.0}, accepted=True),
    block(1, 900.0),
    Sentinels(round=1, target="null-t1", ns={"compute": 2.0}, accepted=False, drift=1.0),
    block(2, 110.0),
    Sentinels(round=2, target="null-t1", ns={"compute": 1.2}, accepted=True, drift=0.2),
    Done(trial="n", status="ok"),
]


def text(records: list[Record]) -> str:
    return "".join(map(line_of, records))


def test_rows_come_from_the_accepted_rounds_only(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(text(RECORDS))
    journal = read_journal(path)
    assert [b.round for b in journal.blocks["n"]] == [0, 2]
    assert journal.networks[0].samples == 4
    assert journal.rounds == 3
    assert journal.overhead_ns == {"null-t1": 2.0}
    assert journal.targets == (TARGET,)
    assert journal.measurements == ()


def clocked(compute: float, memory: float, *, drift: float = 0.0, ratio: float | None = None) -> list[Record]:
    ns = {"compute": compute, "memory": memory}
    one = {"round": 0, "target": "null-t1", "accepted": True}
    sentinels = Sentinels(**{**one, "ns": ns, "drift": drift, "clock_ratio": ratio})
    usual = [Sentinels(**{**one, "round": n, "ns": {"compute": 10.0, "memory": 20.0}}) for n in (1, 2)]
    return [HEADER, SESSION, TRIAL, block(0), sentinels, *usual, Done(trial="n", status="ok")]


def test_a_round_at_a_slower_clock_gives_the_label_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(text(clocked(10.5, 21.0, drift=0.05)))
    journal = read_journal(path)
    assert journal.calm_ns == {"null-t1": {"compute": 10.0, "memory": 20.0}}
    assert journal.networks[0].latency_ns == pytest.approx(100.0 / 1.05)
    assert journal.networks[0].clock_ratio == pytest.approx(1.05)


def test_journals_are_compared_beside_one_clock(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(text(clocked(10.0, 20.0)))
    slow = [record for record in clocked(11.0, 22.0) if not (isinstance(record, Sentinels) and record.round)]
    other.write_text(text(slow))
    journals = [read_journal(path), read_journal(other)]
    assert journals[1].networks[0].latency_ns == pytest.approx(100.0), "its own calm state"
    together = calm_of(journals)
    assert together == {"null-t1": {"compute": 10.0, "memory": 20.0}}
    assert journals[0].beside(together).networks[0].latency_ns == pytest.approx(100.0)
    assert journals[1].beside(together).networks[0].latency_ns == pytest.approx(100.0 / 1.1)


def test_readings_beside_the_samples_define_the_calm_state_too(tmp_path: Path) -> None:
    interleaved = dataclasses.replace(block(0), sentinels={"compute": (30.0, 32.0, 34.0), "memory": (50.0, 50.0)})
    path = tmp_path / "j.jsonl"
    path.write_text(text([HEADER, SESSION, TRIAL, interleaved]))
    journal = read_journal(path)
    assert journal.blocks["n"] == (interleaved,)
    calm = journal.calm_ns["null-t1"]
    assert (calm["compute"], calm["memory"]) == (pytest.approx(30.2, rel=0.01), pytest.approx(50.0))


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lost = Done(trial="n", status="failed", reason="killed")
    whole = text([*RECORDS[:-1], lost])
    for cut in (1, 7, 30):
        path.write_text(whole[:-cut])
        journal = read_journal(path)
        assert journal.networks[0].status != "failed", "its end is what was cut"
        assert path.read_bytes()[: journal.size_bytes].endswith(b"\n")


def test_a_run_that_was_stopped_gives_rows_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(text(RECORDS[:-1]))
    assert [row.latency_ns for row in read_journal(path).networks] == [pytest.approx(105.0, rel=0.01)]
    assert read_journal(path).measured == {"n"}


def test_what_failed_and_was_measured_later_is_a_row_with_a_label(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lost = Done(trial="n", status="failed", reason="killed")
    path.write_text(text([HEADER, SESSION, TRIAL, lost]))
    assert read_journal(path).networks[0].reason == "killed"
    path.write_text(text([HEADER, SESSION, TRIAL, lost, block(0)]))
    assert read_journal(path).networks[0].latency_ns == pytest.approx(100.0)


def test_damage_in_the_middle_names_the_line(tmp_path: Path) -> None:
    lines = text(RECORDS).splitlines()
    lines[5] = lines[5][:20]
    path = tmp_path / "j.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ContentError, match="damaged") as caught:
        read_journal(path)
    assert caught.value.where == f"{path}:6"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ('{"type":"journal","schema":99}', "newer"),
        ('{"type":"journal","schema":0}', "older"),
        ('{"type":"journal"}', "no schema"),
        (text([HEADER, SESSION]).splitlines()[1], "no schema"),
        ("[]", "not a record"),
    ],
)
def test_a_first_line_of_another_format_is_refused(tmp_path: Path, first: str, said: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(first + "\n")
    with pytest.raises(ContentError, match=said) as caught:
        read_journal(path)
    assert caught.value.where == f"{path}:1"


def test_an_empty_or_absent_file_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="no such file"):
        read_journal(tmp_path / "none.jsonl")
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    with pytest.raises(ContentError, match="not a journal"):
        read_journal(path)


def test_sessions_on_two_machines_are_refused(tmp_path: Path) -> None:
    other = Session(environment=Environment(device="d", checked={"cpu": "y"}), targets=(TARGET,))
    path = tmp_path / "j.jsonl"
    path.write_text(text([HEADER, SESSION, other]))
    with pytest.raises(ContentError, match="another machine: cpu is 'y', was 'x'"):
        read_journal(path)


def test_rows_name_their_journal_and_the_time_of_their_first_look(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    looks = [dataclasses.replace(block(number), at_s=1_790_000_000 + number) for number in (1, 0, 2)]
    path.write_text(text([HEADER, SESSION, TRIAL, *looks]))
    (row,) = read_journal(path).networks
    assert (row.journal, row.measured_at) == ("j.jsonl", "2026-09-21T14:13:20Z")
    path.write_text(text(RECORDS))
    assert read_journal(path).networks[0].measured_at is None
