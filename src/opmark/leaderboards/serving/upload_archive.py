"""Unpack an uploaded folder (tar.gz or zip) without trusting anything in it.

Files are read into memory under limits on their number and size as they really are, not as the archive declares them.
Only plain files with plain names are taken; nothing is written before the whole archive was read.
"""

import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from opmark.core.errors import SubmissionError
from opmark.leaderboards.submissions.manifest import FILES_AT_MOST, MANIFEST, SIZE_BYTES_AT_MOST

PARTS_AT_MOST = 16
NAME_BYTES_AT_MOST = 200
# A tar file has a header of 512 bytes per file, and names that are long have two more.
_TAR_BYTES_AT_MOST = SIZE_BYTES_AT_MOST + 4096 * FILES_AT_MOST
# The entries of a zip file are all read before the first is unpacked.
_ENTRIES_AT_MOST = 4 * FILES_AT_MOST
_ENTRY = b"PK\x01\x02"
_CHUNK_BYTES = 1 << 16
_LEFT_OUT = ("__MACOSX", "__pycache__")
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
_HINT = "pack the folder with `tar -czf mine.tar.gz my-folder`, or as a zip file"

Files = dict[PurePosixPath, tuple[bytes, bool]]


def unpack_upload(content: bytes, folder: Path) -> None:
    """Unpack `content` into the new folder `folder`; a single folder around everything is left out.

    Raises `SubmissionError` with the first thing that is wrong; then nothing was written.
    """
    files = _without_wrapping(_read(content))
    folder.mkdir()
    for path, (data, executable) in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if executable else 0o644)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)


def _read(content: bytes) -> Files:
    """The files of the archive by path."""
    if content.startswith(b"\x1f\x8b"):
        entries = _tar_entries(content)
    elif content.startswith(b"PK\x03\x04"):
        entries = _zip_entries(content)
    else:
        raise SubmissionError("the upload is neither a tar.gz nor a zip file", hint=_HINT)
    found: Files = {}
    size_bytes = 0
    try:
        for name, stream, executable in entries:
            path = _plain_path(name)
            if any(part.startswith(".") or part in _LEFT_OUT for part in path.parts):
                continue
            if path in found or any(parent in found for parent in path.parents):
                raise SubmissionError(f"{_shown(name)} appears twice in the upload")
            if len(found) == FILES_AT_MOST:
                raise SubmissionError(f"the upload holds more than {FILES_AT_MOST} files")
            data = _limited(stream, SIZE_BYTES_AT_MOST - size_bytes)
            size_bytes += len(data)
            found[path] = (data, executable)
    except _DAMAGED as error:
        raise SubmissionError(f"the upload is damaged: {type(error).__name__}", hint=_HINT) from error
    except RuntimeError as error:  # a zip file with a password
        raise SubmissionError("the upload has a password", hint=_HINT) from error
    folders = {parent for path in found for parent in path.parents}
    if clash := sorted(folders & found.keys()):
        raise SubmissionError(f"{_shown(str(clash[0]))} is a file and a folder in the upload")
    if not found:
        raise SubmissionError("the upload holds no file", hint=_HINT)
    return found


def _tar_entries(content: bytes) -> Iterator[tuple[str, IO[bytes], bool]]:
    """Name, content and right to execute of each file in a tar.gz file."""
    unpacked = _limited(gzip.GzipFile(fileobj=io.BytesIO(content)), _TAR_BYTES_AT_MOST)
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
        for number, item in enumerate(archive):
            if number >= _ENTRIES_AT_MOST:
                raise SubmissionError(f"the upload holds more than {FILES_AT_MOST} files")
            if item.isdir():
                continue
            if not item.isreg() or item.issparse():
                raise SubmissionError(f"{_shown(item.name)}: only plain files can be submitted, no links")
            stream = archive.extractfile(item)
            assert stream is not None
            yield item.name, stream, bool(item.mode & 0o100)


def _zip_entries(content: bytes) -> Iterator[tuple[str, IO[bytes], bool]]:
    """Name, content and right to execute of each file in a zip file."""
    if content.count(_ENTRY) > _ENTRIES_AT_MOST:
        raise SubmissionError(f"the upload holds more than {FILES_AT_MOST} files")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for item in archive.infolist():
            if not item.filename:
                raise SubmissionError("a file of the upload has no name")
            if item.is_dir():
                continue
            mode = item.external_attr >> 16
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
                raise SubmissionError(f"{_shown(item.filename)}: only plain files can be submitted, no links")
            if item.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise SubmissionError(f"{_shown(item.filename)}: packed by a method other than deflate", hint=_HINT)
            with archive.open(item) as stream:
                yield item.filename, stream, bool(mode & 0o100)


def _limited(stream: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """All of `stream`. Raises `SubmissionError` beyond `most` bytes, before they are kept."""
    found = bytearray()
    while piece := stream.read(_CHUNK_BYTES):
        found += piece
        if len(found) > most:
            raise SubmissionError(f"the upload unpacks to more than {SIZE_BYTES_AT_MOST >> 20} MiB")
    return bytes(found)


def _plain_path(name: str) -> PurePosixPath:
    """The path of a file in the archive. Raises `SubmissionError` where it is not a plain one below the folder."""
    parts = [part for part in name.split("/") if part != "."]
    plain = (
        name.isprintable()
        and "\\" not in name
        and not name.startswith("/")
        and 0 < len(parts) <= PARTS_AT_MOST
        and all(part not in {"", ".."} for part in parts)
    )
    try:
        short = all(len(part.encode()) <= NAME_BYTES_AT_MOST for part in parts)
    except UnicodeEncodeError:
        short = False
    if not plain or not short:
        raise SubmissionError(f"{_shown(name)} is not a plain path inside the folder")
    return PurePosixPath(*parts)


def _without_wrapping(files: Files) -> Files:
    """The files without the one folder around all of them, where the manifest is inside it."""
    first = {path.parts[0] for path in files}
    if PurePosixPath(MANIFEST) in files or len(first) != 1 or any(len(path.parts) == 1 for path in files):
        return files
    return {PurePosixPath(*path.parts[1:]): found for path, found in files.items()}


def _shown(name: str) -> str:
    """A name for a message, whatever it holds."""
    text = "".join(character if character.isprintable() else "�" for character in name[:80])
    return repr(text.encode("utf-8", "replace").decode())
