"""The lines of a journal: one record each, as JSON that ends with the checksum of the line.

Journals of the first versions have no checksums. Where the first line has one, every line must have one.
"""

import json
import re
import zlib
from pathlib import Path

from opmark.core.checksums import without_checksum
from opmark.core.errors import ContentError
from opmark.core.measurements.records import SCHEMA, Record, decode, encode
from opmark.core.reading import parse_json

# CRC-32 finds every flipped bit, and every damaged stretch of up to four bytes.
_CHECKSUM = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')


def line_of(record: Record) -> str:
    """The line that holds `record`, with its line end."""
    text = json.dumps(encode(record), separators=(",", ":"), allow_nan=False)
    return f'{text[:-1]},"crc":"{_crc(text[:-1].encode())}"}}\n'


def records_of(path: Path, content: bytes) -> tuple[list[Record], int]:
    """Every whole record of a journal's `content`, and their size in bytes.

    Raises `ContentError` naming file and line.
    """
    *lines, rest = content.split(b"\n")
    if _is_object(rest[:-1]):
        raise ContentError("damaged: the last record is whole, but its line does not end", where=f"{path}:{len(lines)}")
    sealed = bool(lines) and _CHECKSUM.search(lines[0]) is not None
    if lines and not sealed:
        without_checksum(path)
    # Text after the last line end is a record that a kill cut short.
    records = [_record(f"{path}:{number}", line, number, sealed) for number, line in enumerate(lines, start=1)]
    return records, len(content) - len(rest)


def _record(where: str, line: bytes, number: int, sealed: bool) -> Record:
    found = _CHECKSUM.search(line)
    if found is not None:
        line = line[: found.start()]
        if _crc(line) != found[1].decode():
            raise ContentError("damaged: it does not fit its checksum", where=where)
        line += b"}"
    elif sealed:
        raise ContentError("damaged: it has no checksum", where=where)
    try:
        content = parse_json(line, where)
    except ContentError as error:
        raise ContentError(f"damaged: not a JSON record ({error.message})", where=where) from error
    if number == 1 and isinstance(content, dict):
        _check_schema(content.get("schema"), where)
    try:
        return decode(content)
    except ContentError as error:
        raise ContentError(error.message, where=where) from error


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise ContentError("not a journal: no schema in its first line", where=where)
    if schema != SCHEMA:
        newer = schema > SCHEMA
        raise ContentError(
            f"schema {schema} is {'newer' if newer else 'older'} than {SCHEMA}",
            where=where,
            hint="upgrade OpMark" if newer else "measure again",
        )


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(parse_json(text, ""), dict)
    except ContentError:
        return False


def _crc(line: bytes) -> str:
    return f"{zlib.crc32(line):08x}"
