"""Array types of this room, arrays as JSON text, and linear algebra on one thread."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def to_text(values: Mapping[str, Any]) -> str:
    """Write arrays and plain values as JSON; floats keep every digit."""
    return json.dumps({name: _listed(value) for name, value in values.items()}, sort_keys=True) + "\n"


def from_text(text: str) -> dict[str, Any]:
    """Read the JSON of `to_text`; arrays come back as lists."""
    values: dict[str, Any] = json.loads(text)
    return values


@contextmanager
def single_thread() -> Iterator[None]:
    """Limit numpy's and scipy's linear algebra to one thread within the block.

    On few and busy cores, two threads that wait for each other take ten times as long as one.
    """
    import scipy.linalg  # noqa: F401 (only libraries that are loaded can be limited)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
