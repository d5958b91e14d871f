"""Canonical JSON and content hashes, which identify kernels, graphs, targets and files."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Convert `value` to JSON types: dataclasses and mappings become dicts, tuples become lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def canonical_json(value: Any) -> str:
    """The canonical JSON of `value`: sorted keys, no spaces. Raises `ValueError` on NaN."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_id(value: Any, *, length: int = 16) -> str:
    """The first `length` hex digits of the SHA-256 of `value`'s canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
