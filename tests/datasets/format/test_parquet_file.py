"""Parquet files of others: what is read, what is refused by name, and what takes no memory before it is refused."""

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.readers.mutations import flipped

from opmark.core.errors import ContentError
from opmark.datasets.format import parquet_file
from opmark.datasets.format.parquet_file import read_parquet

ROWS = {"name": ["a", "ä", None], "ns": [1.5, None, 2.0], "n": [1, 2, 3], "q": [[1.0, 2.0], [], None]}


def written(path: Path, rows: Any, **options: Any) -> Path:
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.table(rows), path, **options)
    return path


@pytest.mark.parametrize("codec", ["zstd", "none", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_numbers_texts_and_lists_are_read(tmp_path: Path, codec: str, version: str, dictionary: bool) -> None:
    options = {"compression": codec, "data_page_version": version, "use_dictionary": dictionary, "row_group_size": 2}
    found = read_parquet(written(tmp_path / "a.parquet", ROWS, **options))
    assert found.to_pydict() == ROWS
    assert found.schema.field("name").type == pa.string()


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_table_without_rows_is_read(tmp_path: Path, dictionary: bool) -> None:
    assert read_parquet(written(tmp_path / "a.parquet", pa.table(ROWS)[:0], use_dictionary=dictionary)).num_rows == 0


STRANGE: dict[str, tuple[Callable[[], pa.Table], str]] = {
    "nested": (lambda: pa.table({"a": [{"b": 1}]}), "a: holds struct<b: int64>"),
    "lists of lists": (lambda: pa.table({"a": [[[1.0]]]}), "a: holds list"),
    "lists of texts": (lambda: pa.table({"a": [["x"]]}), "a: holds list"),
    "bytes": (lambda: pa.table({"a": [b"\xff"]}), "a: holds binary"),
    "times": (lambda: pa.table({"a": pa.array([2**62], pa.timestamp("us"))}), "a: holds timestamp"),
    "twice": (lambda: pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), "a: the column stands twice"),
    "no text": (lambda: pa.table({"a": _text(b"\xed\xa0\x80x")}), "not a readable Parquet file"),
    "columns": (lambda: pa.table({str(n): [1] for n in range(1001)}), "1,001 columns, more than 1,000"),
    "rows": (lambda: pa.table({"a": pa.nulls(5_000_001)}), "5,000,001 rows, more than 5,000,000"),
}


def _text(content: bytes) -> pa.Array:
    """A column of a text that is no UTF-8; Arrow does not look."""
    offsets = pa.py_buffer(bytes(4) + len(content).to_bytes(4, "little"))
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(content)])


@pytest.mark.parametrize("name", STRANGE)
def test_strange_tables_are_refused_by_name(tmp_path: Path, name: str) -> None:
    make, sentence = STRANGE[name]
    path = written(tmp_path / "a.parquet", make())
    with pytest.raises(ContentError, match=r"a\.parquet") as caught:
        read_parquet(path)
    assert sentence in str(caught.value)


def test_a_dictionary_of_long_texts_is_not_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array(["x" * 2**10]).take(pa.array([0] * 2000))
    path = written(tmp_path / "a.parquet", {"a": texts, "b": [1] * 2000})
    assert read_parquet(path).num_rows == 2000
    monkeypatch.setattr(parquet_file, "UNPACKED_BYTES_AT_MOST", 2**22)
    with pytest.raises(ContentError, match=r"a\.parquet: a: its texts take too much memory"):
        read_parquet(path)


def test_row_groups_and_list_values_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = written(tmp_path / "a.parquet", {"a": list(range(1001))}, row_group_size=1)
    with pytest.raises(ContentError, match="1,001 row groups, more than 1,000"):
        read_parquet(many)
    lists = written(tmp_path / "b.parquet", {"a": [[1.0] * 1000] * 50})
    monkeypatch.setattr(parquet_file, "VALUES_AT_MOST", 49_999)
    with pytest.raises(ContentError, match="more than 49,999 values"):
        read_parquet(lists)


def test_a_page_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own header counts, whatever the footer says."""
    path = written(tmp_path / "a.parquet", {"a": ["x" * 2**22], "b": [1]}, compression="zstd", write_statistics=False)
    assert path.stat().st_size < 2**12
    content = path.read_bytes()
    sizes = list(parquet_file._unpacked_bytes(content, pq.read_metadata(path)))
    assert 2**22 < max(sizes) < 2**22 + 99
    monkeypatch.setattr(parquet_file, "UNPACKED_BYTES_AT_MOST", 2**22)
    with pytest.raises(ContentError, match=r"a\.parquet: unpacks to more than 4 MiB"):
        read_parquet(path)


def test_the_sizes_of_pages_are_those_of_the_footer(tmp_path: Path) -> None:
    """With the headers themselves, which the footer counts as well."""
    rows = {"a": [f"name {n % 99}" for n in range(3000)], "b": [n * 0.5 for n in range(3000)]}
    for version in ("1.0", "2.0"):
        path = written(tmp_path / "a.parquet", rows, data_page_size=999, data_page_version=version, row_group_size=1000)
        found = pq.read_metadata(path)
        columns = [found.row_group(group).column(place) for group in range(3) for place in range(2)]
        sizes = list(parquet_file._unpacked_bytes(path.read_bytes(), found))
        assert len(sizes) > len(columns)
        assert 0.9 < sum(sizes) / sum(column.total_uncompressed_size for column in columns) <= 1


def test_no_plain_file(tmp_path: Path) -> None:
    (tmp_path / "folder.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "device.parquet").symlink_to("/dev/zero")
    for name, sentence in (("folder", "a folder"), ("pipe", "a pipe"), ("device", "a device")):
        with pytest.raises(ContentError, match=f"it is {sentence}, not a plain file"):
            read_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(ContentError, match="no such file"):
        read_parquet(tmp_path / "absent.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", bytes(99)])
def test_no_parquet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(ContentError, match=r"a\.parquet: not a readable Parquet file"):
        read_parquet(path)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    """Flipped bits and cut ends; a release also has checksums."""
    draw = random.Random(15)
    path = written(tmp_path / "a.parquet", ROWS, compression="zstd")
    content = path.read_bytes()
    for _ in range(150):
        damaged = flipped(content, draw.randrange(8 * len(content)))
        path.write_bytes(damaged if draw.random() < 0.8 else damaged[: draw.randrange(len(content))])
        with contextlib.suppress(ContentError):
            read_parquet(path)
