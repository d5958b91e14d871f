"""Owners of entries: a name of a track belongs to the key of its first submission.

`submissions/<name>/owner.json` holds the public key from the beginning of the first submission, `receipt.json` the
signature of the archive that was scored last.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.errors import SubmissionError
from opmark.core.file_lock import locked
from opmark.core.files import json_text, write_bytes, write_sealed
from opmark.core.schema import load
from opmark.leaderboards.scoring.splits import OWNER
from opmark.leaderboards.scoring.track import LOCK, Track
from opmark.leaderboards.submissions.manifest import SubmissionManifest
from opmark.leaderboards.submissions.pack import ARCHIVE, digest
from opmark.leaderboards.submissions.signature import SignedSubmission

SCHEMA = 1
RECEIPT = "receipt.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The public key to which an entry belongs, in hex."""

    public_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReceipt:
    """The receipt beside a scored archive; receipts of OpMark 0.1 had no signature."""

    sha256: str
    manifest: SubmissionManifest
    layers: tuple[str, ...] = ()
    signed_at: int = 0
    signature: str = ""


def folder_of(track: Track, name: str) -> Path:
    """The folder of an entry's archive, owner and receipt."""
    return track.folder / "submissions" / name


def owner_of(folder: Path) -> Owner | None:
    """The owner of the entry in a folder, None without one. Raises `ContentError` for a damaged file."""
    path = folder / OWNER
    return load(path, Owner, schema=SCHEMA, sealed=True) if path.is_file() else None


@contextlib.contextmanager
def owned(track: Track, signed: SignedSubmission, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the entry of a verified submission: nobody else may submit under its name, and a second run waits.

    `waiting` is called where another run of this entry is under way. Raises `SubmissionError` where the name belongs to
    another key, or where a later archive was already scored.
    """
    folder = folder_of(track, signed.name)
    with track.lock():
        _claim(track, folder, signed)
    with locked(folder / LOCK, waiting=waiting):
        _check_order(folder, signed)
        yield


def keep(track: Track, signed: SignedSubmission, manifest: SubmissionManifest, layers: tuple[str, ...]) -> None:
    """Write the archive that was scored, and its receipt."""
    folder = folder_of(track, signed.name)
    receipt = StoredReceipt(
        sha256=digest(signed.archive),
        manifest=manifest,
        layers=layers,
        signed_at=signed.signed_at,
        signature=signed.signature,
    )
    with track.lock():
        write_bytes(folder / ARCHIVE, signed.archive)
        write_sealed(folder / RECEIPT, json_text({"schema": SCHEMA, **plain(receipt)}))


def _claim(track: Track, folder: Path, signed: SignedSubmission) -> None:
    owner = owner_of(folder)
    if owner is not None:
        if owner.public_key != signed.public_key:
            raise SubmissionError(
                f"{signed.name!r} belongs to another key: {owner.public_key[:16]}…, not {signed.public_key[:16]}…",
                where=f"track {track.name}",
                hint="choose another name, or sign with the key of the first submission (--key FILE)",
            )
        return
    if (folder / RECEIPT).exists() or track.has_entry(signed.name):
        raise SubmissionError(
            f"{signed.name!r} is on this track already, and belongs to no key",
            where=f"track {track.name}",
            hint=f"choose another name; if the entry is yours, remove it and {folder} first",
        )
    write_sealed(folder / OWNER, json_text({"schema": SCHEMA, "public_key": signed.public_key}))


def _check_order(folder: Path, signed: SignedSubmission) -> None:
    """An archive that was signed before the stored one is an old one, handed in again."""
    path = folder / RECEIPT
    if not path.is_file():
        return
    stored = load(path, StoredReceipt, schema=SCHEMA, sealed=True)
    if signed.signed_at < stored.signed_at and digest(signed.archive) != stored.sha256:
        raise SubmissionError(
            f"{signed.name!r} has a newer submission than this one, by the time of its signature", where=str(folder)
        )
