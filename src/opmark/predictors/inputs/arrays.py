"""Array types of this room, arrays as JSON text, and linear algebra on one thread."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmark.core.errors import ContentError
from opmark.core.reading import parse_json

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def to_text(values: Mapping[str, Any]) -> str:
    """Write arrays and plain values as JSON; floats keep every digit."""
    return json.dumps({name: _listed(value) for name, value in values.items()}, sort_keys=True) + "\n"


def from_text(text: str) -> dict[str, Any]:
    """Read the JSON of `to_text`; arrays come back as lists.

    Raises `ValueError` for NaN, infinity, and all else that `reading.parse_json` refuses.
    """
    try:
        values: dict[str, Any] = parse_json(text.encode(), "")
    except ContentError as error:
        raise ValueError(error.message) from error
    return values


def check_shapes(**shaped: tuple[Any, tuple[int, ...]]) -> None:
    """Raise `ValueError` naming the first array with another shape than the one beside it, or with infinite values."""
    for name, (array, shape) in shaped.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: holds a number that is not finite")
        if np.shape(array) != shape:
            raise ValueError(f"{name}: has the shape {np.shape(array)} instead of {shape}")


@contextmanager
def single_thread(*, scipy_too: bool = True) -> Iterator[None]:
    """Limit numpy's and scipy's linear algebra to one thread within the block.

    On few and busy cores, two threads that wait for each other take ten times as long as one. Where nothing in the
    block loads scipy, importing it can be left out.
    """
    from threadpoolctl import threadpool_limits

    if scipy_too:
        import scipy.linalg  # noqa: F401 (only libraries that are loaded can be limited)

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
