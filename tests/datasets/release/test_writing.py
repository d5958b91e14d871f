from pathlib import Path

import pyarrow.parquet as pq
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


def test_bytes_of_one_place_in_all_numbers_stand_together(tmp_path: Path) -> None:
    folder = writer.write([sample.contents()], tmp_path, version="1.0.0")
    group = pq.ParquetFile(folder / "kernels.parquet").metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    numbers = {column.path_in_schema for column in columns if column.physical_type == "DOUBLE"}
    apart = {column.path_in_schema for column in columns if "BYTE_STREAM_SPLIT" in column.encodings}
    assert {"latency_hot_ns", "hot_quantiles_ns.list.element"} <= numbers == apart


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OpMarkError("cannot write: no space left on device")

    monkeypatch.setattr(writer, "_fill", full)
    with pytest.raises(OpMarkError, match="no space"):
        writer.write([sample.contents()], tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
