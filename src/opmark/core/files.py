"""Write files; a write is atomic, so that a file is either complete or unchanged."""

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opmark.core.canonical import plain
from opmark.core.checksums import with_checksum
from opmark.core.errors import ContentError, OpMarkError
from opmark.core.reading import PACKED, plain_stream, read_bytes, read_text


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which replaces it (synced to disk) if the block ends without an error.

    A pipe or a device such as `/dev/null` stays what it is: the content is written into it. Raises `OpMarkError` with
    the file's name if the disk is full, the folder is not writable, or `path` is a folder or a disk.
    """
    temporary = None
    try:
        if _is_stream(path):
            with _written_through(path) as temporary:
                yield temporary
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = _kept_mode(path)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        yield temporary
        _sync(temporary)
        temporary.chmod(mode)
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


def _kept_mode(path: Path) -> int:
    """The rights of the file that is replaced. Raises `PermissionError` for one that may not be written."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return 0o644
    if not stat.S_ISREG(status.st_mode):
        return 0o644
    # The right to a folder suffices to replace a file in it, but that is not what its owner meant.
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(status.st_mode)


def _is_stream(path: Path) -> bool:
    """True for what cannot be replaced but written to: a pipe, a terminal, `/dev/null`, a descriptor of this process.

    Raises `OpMarkError` for a folder, a disk and a socket. Elsewhere a link is an entry of its folder, and is replaced.
    """
    mode = _mode(path)
    if mode is None or stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return mode is not None and _descriptor_of(path) is not None
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return True
    what = "a folder" if stat.S_ISDIR(mode) else "a disk" if stat.S_ISBLK(mode) else "a socket"
    raise OpMarkError(f"is {what}, not a file", where=str(path), hint="name a file to write")


def _mode(path: Path) -> int | None:
    """The kind of what lies at `path`, or None; links to folders and those in /dev and /proc are followed."""
    followed = path.is_dir() or _plain_path(path).startswith(("/dev/", "/proc/"))
    try:
        return (path.stat() if followed else path.lstat()).st_mode
    except FileNotFoundError:
        return None


def _descriptor_of(path: Path) -> int | None:
    """The number in `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` and `/proc/self/fd/N`, or None for other paths."""
    text = _plain_path(path)
    folder, _, number = text.rpartition("/")
    if folder in {"/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd"} and number.isdecimal():
        return int(number)
    return {"/dev/stdout": 1, "/dev/stderr": 2}.get(text)


def _plain_path(path: Path) -> str:
    """The whole path with its links: `/dev/stdout` is one, and the file behind it has another position to write at."""
    return os.path.normpath(Path.cwd() / path)


@contextlib.contextmanager
def _written_through(path: Path) -> Iterator[Path]:
    """Yield a temporary path, whose content is written into `path` if the block ends without an error."""
    number = _descriptor_of(path)
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "content"
        yield temporary
        sys.stdout.flush()
        # A copy of the descriptor shares its position, so that earlier and later output stays in order.
        with path.open("wb") if number is None else os.fdopen(os.dup(number), "wb") as stream:
            stream.write(temporary.read_bytes())


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


def write_sealed(path: Path, text: str) -> None:
    """Write `text`, a JSON object, with its checksum as the last key; `reading.read_json` compares it."""
    write_text(path, with_checksum(text))


def json_text(value: Any) -> str:
    """The indented JSON of `value` (dataclasses allowed), as in files and in the output of `--json`."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sha256(path: Path, *, at_most: int | None = None) -> str:
    """The SHA-256 of a plain file's bytes, as hex digits.

    Raises `ContentError` for a pipe, a device or more than `at_most` bytes, `OSError` where it cannot be read.
    """
    with plain_stream(path, at_most=at_most) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def listed_sha256(path: Path, listing: Path) -> str | None:
    """The SHA-256 of `path`, which need not exist, in its row of `listing`, as `sha256sum` writes it; None without."""
    if not listing.is_file() or not path.is_relative_to(listing.parent):
        return None
    name = path.relative_to(listing.parent).as_posix()
    for row in read_text(listing).splitlines():
        digest, _, listed = row.partition("  ")
        if listed == name:
            return digest
    return None


def check_listed(path: Path, listing: Path) -> bool:
    """Compare a file with its row in `listing`; False if there is none.

    Raises `ContentError` naming the file if they differ.
    """
    digest = listed_sha256(path, listing)
    if digest is not None and hashlib.sha256(read_bytes(path)).hexdigest() != digest:
        raise ContentError(
            f"changed since it was written: it does not fit its checksum in {listing.name}",
            where=str(path),
            hint="copy the folder again",
        )
    return digest is not None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
