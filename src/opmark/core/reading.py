"""Read files of others: one reader of bytes, of text, and of JSON, each with limits.

Only plain files are read, up to a size after decompression. JSON has no key twice, no NaN, no number beyond 64 bits or
the range of a float, no lone surrogates, and no more than `DEPTH_AT_MOST` levels. YAML has a reader beside this one.
"""

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from opmark.core.checksums import HINT, checksum_fits, without_checksum
from opmark.core.errors import ContentError

# Text files with this suffix are compressed.
PACKED = ".gz"
DEPTH_AT_MOST = 100
# A problem of a million units takes 0.25 GB; most files are far smaller.
LARGE_BYTES = 2**30
USUAL_BYTES = 2**26
# Our own files shrink to a tenth. Small files may shrink more, larger ones that do are bombs.
_SHRINKS_AT_MOST = 100
_DIGITS_AT_MOST = 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# Digits as 0, exponents as e+, all else as spaces: so a long number and a large exponent are found at once.
_DIGITS = bytes(
    {**dict.fromkeys(b"0123456789", 48), **dict.fromkeys(b"eE", 101), 43: 43}.get(byte, 32) for byte in range(256)
)
_LARGE = (b"0" * 19, b"0e000", b"0e+000")
_QUICK_FROM_BYTES = 2**12
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# One step down for each bracket that opens, and one up (-1 as a byte) for each that closes.
_STEPS = bytes({91: 1, 123: 1, 93: 255, 125: 255}.get(byte, 0) for byte in range(256))
# Collapsing so many bytes takes a tenth of a second. Deep nesting alone leaves much to collapse many times.
_COLLAPSED_BYTES = 2**26


def read_bytes(path: Path, *, at_most: int = USUAL_BYTES) -> bytes:
    """The bytes of a plain file of at most `at_most` bytes. Raises `ContentError` naming the file."""
    where = str(path)
    try:
        with plain_stream(path, at_most=at_most) as stream:
            content = stream.read(at_most + 1) or b""  # None where a special file has nothing to read yet
    except FileNotFoundError:
        raise ContentError("no such file", where=where) from None
    except OSError as error:
        raise ContentError(f"cannot be read: {error.strerror or error}", where=where) from error
    except ValueError as error:  # a zero byte in the name
        raise ContentError(f"cannot be read: {error}", where=repr(where)) from error
    if len(content) > at_most:
        raise _too_large(where, at_most)
    return content


def read_content(path: Path, *, at_most: int = USUAL_BYTES) -> bytes:
    """The bytes of a plain file, decompressed if its name ends in `.gz`. Raises `ContentError` naming the file."""
    content = read_bytes(path, at_most=at_most)
    return unpacked(content, str(path), at_most=at_most) if path.suffix == PACKED else content


@contextlib.contextmanager
def plain_stream(path: Path, *, at_most: int | None = None) -> Iterator[BufferedReader]:
    """A plain file, opened for reading.

    Raises `ContentError` for anything else and beyond `at_most` bytes, `OSError` where it cannot be opened.
    """
    # A pipe without a writer would block, and a device may do anything: neither is opened.
    _check_plain(path.stat(), str(path), at_most)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        _check_plain(os.fstat(descriptor), str(path), at_most)
        yield stream


def read_text(path: Path, *, at_most: int = USUAL_BYTES) -> str:
    """The text of a UTF-8 file, decompressed if its name ends in `.gz`.

    Raises `ContentError` if it is absent, no plain file, larger than `at_most` bytes, or not text.
    """
    return _decoded(read_content(path, at_most=at_most), str(path))


def read_json(path: Path, *, at_most: int = USUAL_BYTES, sealed: bool = False) -> Any:
    """The content of a JSON file, its checksum checked and left out.

    OpMark writes `sealed` files with a checksum; one without is noted (`checksums.files_without`). Raises
    `ContentError` with the file and the line or key.
    """
    where = str(path)
    content = read_content(path, at_most=at_most)
    fits = checksum_fits(content)
    if fits is False:
        raise ContentError("changed since it was written: it does not fit its checksum", where=where, hint=HINT)
    found = parse_json(content, where, written_by_us=bool(fits))
    if isinstance(found, dict) and fits:
        del found["checksum"]
    elif sealed and path.suffix != PACKED:
        without_checksum(path)
    return found


def parse_json(content: bytes, where: str, *, written_by_us: bool = False) -> Any:
    """The value of JSON text. What OpMark wrote, as a checksum shows, has no key twice and is read faster.

    Raises `ContentError` naming `where`, and the line or key.
    """
    if written_by_us or len(content) > _QUICK_FROM_BYTES:
        found = _parsed_quickly(content, written_by_us)
        if found is not None:
            return found
    text = _decoded(content, where)
    if _is_deeper(content, DEPTH_AT_MOST):
        raise _too_deep(where)
    reader = _Reader(where)
    try:
        found = json.loads(
            text,
            object_pairs_hook=reader.mapping,
            parse_constant=reader.constant,
            parse_int=reader.integer,
            parse_float=reader.number,
        )
    except json.JSONDecodeError as error:
        raise ContentError(f"not JSON: {error.msg}", where=f"{where}:{error.lineno}") from error
    except RecursionError as error:
        raise _too_deep(where) from error
    if b"\\u" in content:
        _check_characters(found, where)
    return found


def unpacked(content: bytes, where: str, *, at_most: int = USUAL_BYTES) -> bytes:
    """Decompress gzip `content`. Raises `ContentError` for what is damaged, cut off, or a bomb."""
    import zlib

    at_most = min(at_most, max(USUAL_BYTES, _SHRINKS_AT_MOST * len(content)))
    pieces, room = [], at_most
    while content:
        stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            pieces.append(stream.decompress(content, room + 1))
        except zlib.error as error:
            raise ContentError("not a complete gzip file", where=where) from error
        room -= len(pieces[-1])
        if room < 0:
            raise _too_large(where, at_most)
        if not stream.eof:
            raise ContentError("not a complete gzip file", where=where)
        content = stream.unused_data.lstrip(b"\0")
    if not pieces:
        raise ContentError("not a complete gzip file", where=where)
    return b"".join(pieces)


def may_hold_large_numbers(content: bytes) -> bool:
    """True for JSON text that may hold a number beyond 64 bits or the range of a float.

    The quick reader would take it, and a checksum excuses neither: anybody can compute one.
    """
    digits = content.translate(_DIGITS)
    return any(pattern in digits for pattern in _LARGE)


def _parsed_quickly(content: bytes, written_by_us: bool) -> Any:
    """The value of JSON text without anything that is refused; None where the slow reader must look.

    That reader calls Python for every mapping and number. This one compares the colons of the text with those of the
    value written again: a key that appears twice would leave fewer. Without escapes, both have the same in strings.
    """
    from pydantic_core import from_json, to_json

    try:
        if may_hold_large_numbers(content):
            return None
        found = from_json(content, allow_inf_nan=False, cache_strings="keys")
        if written_by_us:
            return found
        if b"\\" in content or _is_deeper(content, DEPTH_AT_MOST):
            return None
        again = to_json(found, inf_nan_mode="constants")
    except ValueError:
        return None
    same = again.count(b":") == content.count(b":")
    return found if same and b"Infinity" not in again else None


class _Reader:
    """The functions that the parser calls for mappings and numbers."""

    def __init__(self, where: str) -> None:
        self._where = where

    def mapping(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise ContentError(f"the key {twice!r} appears twice", where=self._where)
        return found

    def integer(self, text: str) -> int:
        if len(text) <= _DIGITS_AT_MOST and -(2**63) <= int(text) < 2**64:
            return int(text)
        raise ContentError(f"the number {_shortened(text)} takes more than 64 bits", where=self._where)

    def number(self, text: str) -> float:
        value = float(text)
        if math.isfinite(value):
            return value
        raise ContentError(f"the number {_shortened(text)} is too large", where=self._where)

    def constant(self, text: str) -> NoReturn:
        raise ContentError(f"{text} is not a number of JSON", where=self._where)


def _check_plain(status: os.stat_result, where: str, at_most: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for check, name in _KINDS if check(status.st_mode)), "something else")
        raise ContentError(f"cannot be read: it is {kind}, not a plain file", where=where)
    if at_most is not None and status.st_size > at_most:
        raise _too_large(where, at_most)


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ContentError("not a text file", where=where) from error


def _is_deeper(content: bytes, levels: int) -> bool:
    """True if lists and mappings nest more than `levels` deep.

    The brackets alone are collapsed from the inside; only brackets in strings and many megabytes need the exact count.
    """
    brackets = content.translate(None, _NO_BRACKETS)
    seen_bytes = 0
    for _ in range(levels):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        seen_bytes += len(brackets)
        if len(inner) == len(brackets) or seen_bytes > _COLLAPSED_BYTES:
            break
        brackets = inner
    return bool(brackets) and _depth(content) > levels


def _depth(content: bytes) -> int:
    """The deepest nesting outside of strings."""
    import re
    from array import array
    from itertools import accumulate

    outside = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", content, flags=re.DOTALL)
    steps = array("b", outside.translate(_STEPS, _NO_BRACKETS))
    return max(accumulate(steps), default=0)


def _check_characters(value: Any, where: str) -> None:
    """Refuse half of a surrogate pair, which cannot be written to any file or terminal."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ContentError("a text holds half of a surrogate pair", where=where) from error


def _shortened(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:16]}… ({len(text):,} characters)"


def _too_large(where: str, at_most: int) -> ContentError:
    return ContentError(f"larger than {at_most >> 20:,} MiB", where=where)


def _too_deep(where: str) -> ContentError:
    return ContentError(f"nested more than {DEPTH_AT_MOST} levels deep", where=where)
