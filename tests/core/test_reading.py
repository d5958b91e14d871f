"""One reader for files of others: what it gives is what Python's own parser gives, or one sentence."""

import gzip
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core import reading
from opmark.core.checksums import with_checksum
from opmark.core.errors import ContentError
from opmark.core.files import write_sealed
from opmark.core.reading import DEPTH_AT_MOST, parse_json, read_bytes, read_json, read_text, unpacked

NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(VALUES)
def test_plain_values_are_read_as_they_were_written(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        assert parse_json(text.encode(), "f") == value
        assert parse_json(text.encode(), "f", written_by_us=True) == value


@given(VALUES, st.binary(max_size=4), st.integers(0, 200))
def test_damaged_text_is_read_as_python_reads_it_or_refused(value: Any, piece: bytes, place: int) -> None:
    text = json.dumps(value).encode()
    damaged = text[:place] + piece + text[place:]
    try:
        found = parse_json(damaged, "f")
    except ContentError:
        return
    assert found == json.loads(damaged)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "f: the key 'c' appears twice"),
        ("[1e999]", "f: the number 1e999 is too large"),
        ("[-1.5e400]", "f: the number -1.5e400 is too large"),
        (f"[{'9' * 5000}]", r"f: the number 9999999999999999… \(5,000 characters\) takes more than 64 bits"),
        (f"[{2**64}]", "takes more than 64 bits"),
        ("[NaN]", "f: NaN is not a number of JSON"),
        ("[-Infinity]", "f: -Infinity is not a number of JSON"),
        ('["\\ud800"]', "f: a text holds half of a surrogate pair"),
        ('["\\udc00\\ud800"]', "half of a surrogate pair"),
        ('{"\\ud800": 1}', "half of a surrogate pair"),
        ("[" * 101 + "]" * 101, "f: nested more than 100 levels deep"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "f: nested more than 100 levels deep"),
        ("[" * 100_000, "f: nested more than 100 levels deep"),
        ('{\n"a": 1,\n]', "f:3: not JSON"),
        ("", "f:1: not JSON"),
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_what_no_other_program_agrees_on_is_refused(
    text: str, sentence: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(reading, "_QUICK_FROM_BYTES", 0)
    with pytest.raises(ContentError, match=sentence):
        parse_json(text.encode(), "f")


@given(VALUES)
def test_large_texts_are_read_like_small_ones(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    found = reading._parsed_quickly(text, False)
    assert found is None or found == parse_json(text, "f")
    assert reading._parsed_quickly(b'{"a": 1, "b": ' + text + b', "b": 2}', False) is None


def test_brackets_inside_texts_are_no_levels() -> None:
    assert parse_json(json.dumps(["[" * 500, "}" * 500, '"[']).encode(), "f")[1] == "}" * 500
    assert parse_json(b"[" * DEPTH_AT_MOST + b"]" * DEPTH_AT_MOST, "f")
    assert parse_json(b'["\\ud83d\\ude00"]', "f") == ["😀"]


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path, kind in ((tmp_path / "pipe.json", "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path, "a folder")):
        with pytest.raises(ContentError, match=f"cannot be read: it is {kind}, not a plain file"):
            read_bytes(path)
    with pytest.raises(ContentError, match="cannot be read"):
        read_text(tmp_path / "a\0b")
    (tmp_path / "link").symlink_to(tmp_path / "pipe.json")
    with pytest.raises(ContentError, match="a pipe"):
        read_json(tmp_path / "link")


def test_bombs_and_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.json.gz"
    path.write_bytes(gzip.compress(b" " * (reading.USUAL_BYTES + 1)))
    with pytest.raises(ContentError, match="larger than 64 MiB"):
        read_json(path)
    with pytest.raises(ContentError, match="larger than 64 MiB"):
        read_json(path, at_most=reading.LARGE_BYTES)  # it shrinks to a thousandth, which no file of ours does
    monkeypatch.setattr(reading, "USUAL_BYTES", 2**20)
    with pytest.raises(ContentError, match="larger than 1 MiB"):
        unpacked(
            gzip.compress(b"a" * 2**19, mtime=0) + gzip.compress(b"b" * 2**19, mtime=0) + gzip.compress(b"c", mtime=0),
            "f",
            at_most=2**20,
        )
    assert unpacked(gzip.compress(b"a", mtime=0) + gzip.compress(b"b", mtime=0) + b"\0\0", "f") == b"ab"
    (tmp_path / "plain").write_bytes(b"1" * (2**20 + 1))
    with pytest.raises(ContentError, match="larger than 1 MiB"):
        read_text(tmp_path / "plain", at_most=2**20)


@pytest.mark.parametrize(
    "content", [b"", b"no", gzip.compress(b"1", mtime=0)[:-1], gzip.compress(b"1", mtime=0) + b"x"]
)
def test_what_is_no_whole_gzip_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "b.json.gz"
    path.write_bytes(content)
    with pytest.raises(ContentError, match="not a complete gzip file"):
        read_json(path)


def test_a_sealed_file_is_read_without_its_checksum(tmp_path: Path) -> None:
    for name in ("a.json", "a.json.gz"):
        write_sealed(tmp_path / name, '{\n  "a": [1, 2.5]\n}\n')
        assert read_json(tmp_path / name, sealed=True) == {"a": [1, 2.5]}
    assert math.isclose(json.loads((tmp_path / "a.json").read_text())["a"][1], 2.5)


def test_a_special_file_that_has_nothing_to_read_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/proc/kmsg` says that it is plain, and gives None where nothing was logged."""
    path = tmp_path / "quiet.json"
    path.write_text("{}")

    class Quiet:
        def __init__(self, descriptor: int, _mode: str) -> None:
            self.descriptor = descriptor

        def __enter__(self) -> "Quiet":
            return self

        def __exit__(self, *_error: object) -> None:
            os.close(self.descriptor)

        def read(self, _most: int) -> None:
            return None

    monkeypatch.setattr(os, "fdopen", Quiet)
    assert read_bytes(path) == b""
    with pytest.raises(ContentError, match=r"quiet\.json"):
        read_json(path)


@pytest.mark.parametrize(
    "value", ["9" * 5000, "1" + "0" * 40, "-" + "9" * 19, "1e999", "-2E+0400", "0.5e999", "1" * 18 + "e299"]
)
def test_a_checksum_excuses_no_number_out_of_range(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(with_checksum(f'{{"a": {value}}}'))
    with pytest.raises(ContentError, match=r"a\.json: the number .* (takes more than 64 bits|is too large)"):
        read_json(path)


@pytest.mark.parametrize(
    ("content", "depth"),
    [
        (b"[" * 2_000 + b"]" * 2_000, 2_000),
        (b'["]]]", "[[[["]', 1),
        (b'[{"a": [1]}, {}]', 3),
        (b"", 0),
        (b'["\\"[["]', 1),
    ],
)
def test_the_exact_depth_is_that_outside_of_texts(content: bytes, depth: int) -> None:
    assert reading._depth(content) == depth


def test_a_small_bomb_of_brackets_is_not_collapsed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = b"[" * 50_000 + b"]" * 50_000
    counted = []
    exact = reading._depth
    monkeypatch.setattr(reading, "_depth", lambda content: counted.append(len(content)) or exact(content))
    monkeypatch.setattr(reading, "_COLLAPSED_BYTES", 2 * len(bomb))
    with pytest.raises(ContentError, match="nested more than 100 levels deep"):
        parse_json(bomb, "f")
    assert set(counted) == {len(bomb)}
    counted.clear()
    assert parse_json(b"[" + b",".join([b"[[]]"] * 30_000) + b"]", "f") == [[[]]] * 30_000
    assert not counted
