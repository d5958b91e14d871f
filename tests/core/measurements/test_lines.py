import json
import random
from pathlib import Path

import pytest
from tests.datasets import sample
from tests.datasets.journals import write_journal
from tests.sealing import sealed

from opmark.core.errors import ContentError
from opmark.core.measurements.journal import Journal, read_journal
from opmark.core.measurements.lines import line_of
from opmark.core.measurements.records import Done, Header

FLIPS = 400


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "j.jsonl", sample.kernels(2), networks=["tiny"])


def older(path: Path) -> list[dict[str, object]]:
    """The records of a journal as the first versions wrote them, without checksums."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "crc"} for record in records]


def test_a_line_ends_with_the_checksum_of_what_comes_before() -> None:
    line = line_of(Done(trial="a", status="ok"))
    assert line == '{"type":"done","trial":"a","status":"ok","reason":"","crc":"' + line[-11:-3] + '"}\n'
    assert line == sealed({"type": "done", "trial": "a", "status": "ok", "reason": ""})


def test_every_flipped_bit_is_refused_with_its_line(journal: Path) -> None:
    content, draw = journal.read_bytes(), random.Random(1)
    places = [draw.randrange(8 * len(content)) for _ in range(FLIPS)]
    # The last line end is where a kill may have cut the file.
    for place in [*places, *range(8 * len(content) - 8, 8 * len(content))]:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        journal.write_bytes(bytes(flipped))
        with pytest.raises(ContentError, match=r"j\.jsonl:\d+: "):
            read_journal(journal)


def test_a_journal_without_checksums_is_read_and_goes_on_with_them(journal: Path) -> None:
    whole = read_journal(journal)
    records = older(journal)
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert _values(read_journal(journal)) == _values(whole)
    journal.write_text("".join(json.dumps(record) + "\n" for record in records[:-1]) + sealed(dict(records[-1])))
    assert _values(read_journal(journal)) == _values(whole)


def test_a_line_that_lost_its_checksum_is_refused_where_the_first_has_one(journal: Path) -> None:
    lines = journal.read_text().splitlines(keepends=True)
    lines[4] = json.dumps(older(journal)[4]) + "\n"
    journal.write_text("".join(lines))
    with pytest.raises(ContentError, match=r"j\.jsonl:5: damaged: it has no checksum"):
        read_journal(journal)


def test_a_kernel_belongs_to_the_key_of_its_trial(journal: Path) -> None:
    records = older(journal)
    trial = next(record for record in records if record["type"] == "kernel")
    trial["kernel"]["parameters"]["dtype"] = "float16"  # type: ignore[index]
    journal.write_text("".join(map(sealed, records)))
    with pytest.raises(ContentError, match="is not the key of its kernel on"):
        read_journal(journal)


def test_samples_need_a_trial(journal: Path) -> None:
    journal.write_text(journal.read_text() + line_of(Done(trial="nobody", status="ok")))
    with pytest.raises(ContentError, match="no trial is called 'nobody' before this record"):
        read_journal(journal)


def test_a_record_cut_short_is_left_out_and_a_lost_line_end_is_not(journal: Path) -> None:
    line = line_of(Header(suite="s", suite_id="1", quality="full"))
    for cut in range(1, len(line)):
        journal.write_text(line + line[:-cut])
        assert read_journal(journal).size_bytes == len(line)
    journal.write_text(line + line[:-1] + "*")
    with pytest.raises(ContentError, match=r"j\.jsonl:\d: damaged: the last record is whole"):
        read_journal(journal)


def _values(journal: Journal) -> object:
    return journal.measurements, journal.networks, journal.calm_ns, journal.environment
