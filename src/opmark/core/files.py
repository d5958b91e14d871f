"""Read and write files; a write is atomic, so that a file is either complete or unchanged."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, OpMarkError

# Text files with this suffix are compressed.
PACKED = ".gz"


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which replaces it (synced to disk) if the block ends without an error.

    Raises `OpMarkError` with the file's name if the disk is full or the folder is not writable.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        yield temporary
        _sync(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise OpMarkError(
            f"cannot write: {error.strerror or error}",
            where=str(path),
            hint="free some space or choose another place",
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, or leave `path` unchanged on an error."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write `content` to `path` as UTF-8, compressed if the name ends in `.gz`; leave `path` unchanged on an error."""
    data = content.encode()
    if path.suffix == PACKED:
        import gzip

        data = gzip.compress(data, compresslevel=9, mtime=0)  # without a time stamp, equal text gives equal bytes
    write_bytes(path, data)


def write_json(path: Path, value: Any) -> None:
    """Write `value` (dataclasses allowed) as indented JSON; keys keep their order."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """The indented JSON of `value` (dataclasses allowed), as in files and in the output of `--json`."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """Parse a JSON file. Raises `ContentError` with the file and the line."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ContentError(f"not JSON: {error.msg}", where=f"{path}:{error.lineno}") from error


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, decompressed if its name ends in `.gz`.

    Raises `ContentError` if it is absent, a folder, or not text.
    """
    try:
        return _unpacked(path) if path.suffix == PACKED else path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ContentError("no such file", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise ContentError("not a text file", where=str(path)) from error
    except OSError as error:
        raise ContentError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _unpacked(path: Path) -> str:
    import gzip
    import zlib

    try:
        return gzip.decompress(path.read_bytes()).decode()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ContentError("not a complete gzip file", where=str(path)) from error


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, as hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
