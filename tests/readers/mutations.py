"""Damage to files: single bits, stretches of bytes, and values inside JSON and YAML."""

import contextlib
import gzip
import io
import json
import random
import re
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from tests.sealing import sealed, unsealed

from opmark.core.canonical import content_id
from opmark.core.checksums import with_checksum

# Values that people, other programs and attackers put where another is expected.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 255, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1e-300, 1e30, 1e308, -1e308, "", "0", "100", "1e999", "a", "../../x", "/dev/zero", "x" * 5000),
    *("\x1b[31m", "\x00", "\n", "ä\u202e", "None", "nan", "-t0", "null-t1", "torch-eager-t1", "float64", "float99"),
    *([], {}, [[]], [None], [0], [-1, -1], {"": 0}, {"a": {"b": []}}, ["a", "a"]),
)
# Texts that JSON's own writer would not write.
RAW = ("1e999", "-1e999", "NaN", "Infinity", "9" * 5000, '"\\ud800"', "[" * 150 + "]" * 150, "[" * 5000, "01", "")
_MARK = "@@raw@@"
_TOKENS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b"-",
    b"\\u0000",
    b"e9",
    b"\n",
    b"*a",
    b"&a ",
    b"!!",
    b"\xff",
    b"\x00",
)


def flipped(content: bytes, place: int) -> bytes:
    """`content` with bit `place` inverted."""
    found = bytearray(content)
    found[place // 8] ^= 1 << place % 8
    return bytes(found)


def mutated(draw: random.Random, name: str, content: bytes) -> bytes:
    """A damaged copy of the file `name`: half of the time a value in it is another, and its checksums fit again."""
    if draw.random() < 0.6:
        with contextlib.suppress(OverflowError, RecursionError, UnicodeDecodeError):
            return _with_other_values(draw, name, content)
    return _with_other_bytes(draw, content)


def _with_other_bytes(draw: random.Random, content: bytes) -> bytes:
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        at = draw.randrange(len(found) + 1)
        end = min(len(found), at + draw.choice((1, 1, 4, 64)))
        way = draw.randrange(6)
        if way == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif way == 1:
            del found[at:end]
        elif way == 2:
            found[at:at] = draw.randbytes(draw.choice((1, 2, 16)))
        elif way == 3:
            found[at:at] = found[at:end]
        elif way == 4:
            found[at:at] = draw.choice(_TOKENS) * draw.choice((1, 1, 1, 200))
        else:
            del found[at if draw.random() < 0.3 else len(found) :]
    return bytes(found)


def _with_other_values(draw: random.Random, name: str, content: bytes) -> bytes:
    suffix = Path(name).suffix
    if suffix == ".gz":
        inner = _with_other_values(draw, Path(name).stem, gzip.decompress(content))
        return gzip.compress(inner, mtime=0)
    if suffix == ".yaml":
        return _dumped(draw, yaml.safe_load(content), _yaml_text).encode()
    if suffix == ".jsonl":
        lines = content.decode().splitlines(keepends=True)
        at = draw.randrange(len(lines))
        line = json.loads(lines[at])
        sealed_line = "crc" in line
        line.pop("crc", None)
        text = _dumped(draw, line, json.dumps)
        if sealed_line:
            with contextlib.suppress(ValueError, AttributeError):
                text = sealed(json.loads(text)).rstrip("\n")
        lines[at] = text + "\n"
        return "".join(lines).encode(errors="surrogatepass")
    if suffix == ".json":
        whole = json.loads(unsealed(content.decode()))
        if "id" in whole and "estimator" in whole:  # a bundle, whose id is the hash of all else
            return _signed(draw, whole)
        text = _dumped(draw, whole, json.dumps)
        if draw.random() < 0.7 and text.endswith("}"):
            text = with_checksum(text)
        return text.encode(errors="surrogatepass")
    if suffix == ".parquet":
        return _with_other_cells(draw, content)
    if suffix == ".csv":
        return _with_other_fields(draw, content)
    return _with_other_bytes(draw, content)


def _with_other_cells(draw: random.Random, content: bytes) -> bytes:
    """A Parquet file with another value, column or type in it; bytes where the values fit no column together."""
    table = pq.read_table(io.BytesIO(content))
    rows, name = table.to_pylist(), draw.choice(table.column_names)
    way = draw.randrange(6)
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        table = table.append_column(draw.choice((name, "new")), table[name])
    elif way == 2:
        kind = draw.choice((pa.string(), pa.float64(), pa.int8(), pa.bool_(), pa.large_string(), pa.float32()))
        with contextlib.suppress(pa.ArrowException):
            position = table.column_names.index(name)
            table = table.set_column(position, name, table[name].cast(kind, safe=False))
    elif way == 3:
        table = pa.concat_tables([table, table.slice(0, 1)])
    elif rows:
        rows[draw.randrange(len(rows))][name] = draw.choice((*VALUES, float("nan"), float("inf"), -1.0, 2.0**70))
        with contextlib.suppress(pa.ArrowException, OverflowError, ValueError, TypeError):
            schema = table.schema if way == 4 else None
            table = pa.Table.from_pylist(rows, schema=schema).replace_schema_metadata(table.schema.metadata)
    written = io.BytesIO()
    try:
        pq.write_table(table, written, compression=draw.choice(("zstd", "none")))
    except (pa.ArrowException, UnicodeEncodeError):
        return _with_other_bytes(draw, content)
    return written.getvalue()


def _with_other_fields(draw: random.Random, content: bytes) -> bytes:
    """A CSV file with another cell or header."""
    lines = [line.split(",") for line in content.decode().splitlines()]
    row = draw.choice(lines)
    value = draw.choice((*VALUES, *RAW, "nan", "inf", "1_000", "\u0663", "=1+1", "9" * 400, "1e400", "\ufeff"))
    row[draw.randrange(len(row))] = str(value)
    return "\n".join(map(",".join, lines)).encode(errors="surrogatepass")


def _signed(draw: random.Random, whole: dict[str, Any]) -> bytes:
    text = _dumped(draw, whole, json.dumps)
    with contextlib.suppress(ValueError, AttributeError):
        changed = json.loads(text)
        changed["id"] = content_id({key: value for key, value in changed.items() if key not in {"schema", "id"}})
        text = json.dumps(changed)
    return text.encode(errors="surrogatepass")


def _dumped(draw: random.Random, whole: Any, dump: Callable[[Any], str]) -> str:
    raw = None
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        raw = _change(draw, whole) or raw
    text = dump(whole)
    if raw is not None:
        text = re.sub(f"[\"']?{_MARK}[\"']?", lambda _: raw, text)
    return text


def _change(draw: random.Random, whole: Any) -> str | None:
    """Change one place of `whole`; returns the text that replaces the mark, if it was set."""
    parent = _somewhere(draw, whole)
    if not parent:
        return None
    key = draw.choice(list(parent)) if isinstance(parent, dict) else draw.randrange(len(parent))
    way = draw.randrange(8)
    if way == 0:
        del parent[key]
    elif way == 1 and isinstance(parent, dict):
        parent["".join(draw.choices(string.ascii_lowercase, k=3))] = parent.pop(key)
    elif way == 2 and isinstance(parent, list):
        parent.insert(key, parent[draw.randrange(len(parent))])
    elif way == 3:
        parent[key] = draw.choice((lambda v: [v], lambda v: {"a": v}, str, lambda v: [v] * 3))(parent[key])
    elif way == 4:
        parent[key] = _MARK
        return draw.choice(RAW)
    elif way == 5 and isinstance(parent[key], int | float):
        value = parent[key]
        parent[key] = draw.choice((-value, value * 1e6, value + 1, value * 2**40, float(value)))
    elif way == 6 and isinstance(parent, dict):
        # The writer cannot write a key twice: the mark closes a text and opens the same key again.
        twice = json.dumps(key)
        parent[key] = _MARK
        return f"0, {twice}: 0"
    else:
        parent[key] = draw.choice(VALUES)
    return None


def _somewhere(draw: random.Random, whole: Any) -> Any:
    """A list or mapping inside `whole`, each level as likely as the next."""
    found = [whole]
    while isinstance(found[-1], dict | list) and found[-1]:
        values = list(found[-1].values()) if isinstance(found[-1], dict) else found[-1]
        found.append(draw.choice(values))
    inner = [item for item in found if isinstance(item, dict | list) and item]
    return draw.choice(inner) if inner else None


def _yaml_text(value: Any) -> str:
    # Without aliases: a shared list is written twice.
    return yaml.dump(value, Dumper=_PlainDumper, allow_unicode=True, sort_keys=False)


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
