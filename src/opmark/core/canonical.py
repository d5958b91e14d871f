"""Canonical JSON and content hashes, which identify kernels, graphs, targets and files."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

_ATOMS = frozenset({str, int, float, bool, type(None)})
# `json.dumps` would make one for each call.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(value: Any) -> Any:
    """Convert `value` to JSON types: dataclasses and mappings become dicts, tuples become lists."""
    kind = type(value)
    if kind in _ATOMS:  # most values are
        return value
    names = _names(kind)  # type: ignore[arg-type]
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@cache
def _names(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a dataclass, None for any other type."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def canonical_json(value: Any) -> str:
    """The canonical JSON of `value`: sorted keys, no spaces. Raises `ValueError` on NaN."""
    return _ENCODER.encode(plain(value))


def content_id(value: Any, *, length: int = 16) -> str:
    """The first `length` hex digits of the SHA-256 of `value`'s canonical JSON."""
    return text_id(canonical_json(value), length=length)


def text_id(text: str, *, length: int = 16) -> str:
    """The same of canonical JSON that is there already."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]
