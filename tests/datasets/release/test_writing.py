from pathlib import Path

import pytest
from tests.datasets import sample

from opmark.core.errors import OpMarkError, UsageError
from opmark.datasets.release import writing as writer


def test_versions_count_up_from_the_newest(tmp_path: Path) -> None:
    assert writer.next_version(tmp_path) == "1.0.0"
    for version in ("1.0.0", "1.9.0", "1.10.0"):
        (tmp_path / version).mkdir()
    assert writer.next_version(tmp_path) == "1.11.0"


def test_a_release_is_written_once(tmp_path: Path) -> None:
    folder = writer.write([sample.contents()], tmp_path, version="1.0.0")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UsageError, match="never changed"):
        writer.write([sample.contents()], tmp_path, version="1.0.0")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OpMarkError("cannot write: no space left on device")

    monkeypatch.setattr(writer, "_fill", full)
    with pytest.raises(OpMarkError, match="no space"):
        writer.write([sample.contents()], tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
