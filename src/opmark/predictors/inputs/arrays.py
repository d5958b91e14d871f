"""The array types of this room, and arrays as text."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def to_text(values: Mapping[str, Any]) -> str:
    """Arrays and plain values as JSON; floats keep every digit."""
    return json.dumps({name: _listed(value) for name, value in values.items()}, sort_keys=True) + "\n"


def from_text(text: str) -> dict[str, Any]:
    """What `to_text` wrote, arrays as lists."""
    values: dict[str, Any] = json.loads(text)
    return values


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
