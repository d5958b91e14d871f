"""Signatures: made once per key, and void for any other name, archive, time or key."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from opmark.core.errors import ContentError, OpMarkError, SubmissionError
from opmark.leaderboards.submissions.signature import SubmitterKey, own_key, sign, verify


@pytest.fixture
def key(tmp_path: Path) -> SubmitterKey:
    return own_key(tmp_path / "keys" / "own.pem")


def test_a_key_is_made_once_and_is_its_owners_alone(key: SubmitterKey, tmp_path: Path) -> None:
    path = tmp_path / "keys" / "own.pem"
    assert own_key(path).public == key.public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["own.pem"]
    assert own_key(tmp_path / "other.pem").public != key.public


def test_a_signature_covers_name_archive_time_and_key(key: SubmitterKey, tmp_path: Path) -> None:
    signed = sign("mine", b"an archive", key)
    verify(signed)
    stranger = own_key(tmp_path / "stranger.pem")
    changes: list[dict[str, object]] = [
        {"name": "yours"},
        {"archive": b"another archive"},
        {"signed_at": signed.signed_at + 1},
        {"public_key": stranger.public},
        {"signature": sign("mine", b"an archive", stranger).signature},
        {"signature": "00" * 64},
    ]
    for change in changes:
        with pytest.raises(SubmissionError, match="does not fit"):
            verify(replace(signed, **change))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "xyz", "00", "00" * 33, "0A" * 32, " " + "00" * 32])
def test_a_malformed_key_is_one_sentence(key: SubmitterKey, text: str) -> None:
    with pytest.raises(SubmissionError, match="its public key is not 32 bytes"):
        verify(replace(sign("mine", b"x", key), public_key=text))


def test_a_file_that_is_no_key_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a key")
    with pytest.raises(ContentError, match="not a private key"):
        own_key(path)
    assert path.read_text() == "not a key"
    with pytest.raises(OpMarkError, match="the key cannot be written"):
        own_key(path / "key.pem")


def test_a_key_is_a_small_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pem")
    (tmp_path / "device.pem").symlink_to("/dev/zero")
    (tmp_path / "large.pem").write_bytes(bytes(2**16 + 1))
    for name, sentence in (("pipe", "it is a pipe"), ("device", "it is a device"), ("large", "larger than")):
        with pytest.raises(ContentError, match=sentence):
            own_key(tmp_path / f"{name}.pem")
