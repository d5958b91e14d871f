"""Checksums at the end of JSON files and in a listing beside them."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from opmark.core.checksums import (
    checksum_fits,
    files_without,
    forget_files,
    with_checksum,
    without_checksum,
)
from opmark.core.errors import ContentError
from opmark.core.files import check_listed
from opmark.core.reading import read_json

TEXTS = ('{\n  "a": 1\n}\n', '{"a":1}', '{"a": {"b": []}}\n')


@pytest.mark.parametrize("text", TEXTS)
def test_the_checksum_is_the_last_key_and_covers_all_else(text: str) -> None:
    whole = with_checksum(text)
    content = json.loads(whole)
    assert list(content)[-1] == "checksum"
    assert content["checksum"] == hashlib.sha256(text.encode()).hexdigest()
    assert {key: value for key, value in content.items() if key != "checksum"} == json.loads(text)
    assert checksum_fits(whole.encode())
    assert checksum_fits(text.encode()) is None
    assert checksum_fits(whole.replace("1", "2", 1).encode() if "1" in text else whole.encode() + b" ") is False


def test_a_value_without_keys_has_no_room_for_it() -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        with_checksum("[1]")


def test_a_changed_file_says_how_to_use_it_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(with_checksum(TEXTS[0]).replace('"a"', '"b"'))
    with pytest.raises(ContentError, match="changed since it was written") as caught:
        read_json(path)
    assert caught.value.hint is not None
    assert "remove its last key" in caught.value.hint


def test_files_without_a_checksum_are_listed_until_they_are_forgotten(tmp_path: Path) -> None:
    forget_files()
    path = tmp_path / "a.json"
    path.write_text(TEXTS[0])
    read_json(path)
    assert files_without() == ()
    for _ in range(2):
        read_json(path, sealed=True)
    without_checksum(tmp_path / "b.json")
    assert files_without() == (path, tmp_path / "b.json")
    forget_files()
    assert files_without() == ()


def test_a_listing_beside_a_folder_guards_its_files(tmp_path: Path) -> None:
    path, listing = tmp_path / "d" / "1.0.0" / "manifest.json", tmp_path / "SHA256SUMS"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert not check_listed(path, listing)
    listing.write_text(f"{'0' * 64}  other\n{hashlib.sha256(b'{}').hexdigest()}  d/1.0.0/manifest.json\n")
    assert check_listed(path, listing)
    assert not check_listed(Path("/elsewhere"), listing)
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1 << random.Random(1).randrange(8)]) + b"}")
    with pytest.raises(ContentError, match=r"manifest\.json: changed since it was written.*SHA256SUMS"):
        check_listed(path, listing)
