"""Whole numbers as int64 arrays, and lists of them in compressed rows."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from opmark.core.errors import ContentError

Integers = npt.NDArray[np.int64]


def integers(values: Iterable[int]) -> Integers:
    """`values` as an int64 array. Raises `ContentError` beyond 2^63."""
    try:
        return np.fromiter(values, dtype=np.int64)
    except OverflowError:
        raise ContentError("a number is too large: everything must stay below 2^63") from None


def rows(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Compressed rows: the offset of each list, and all lists end to end."""
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(np.fromiter((len(row) for row in lists), dtype=np.int64, count=len(lists)), out=offsets[1:])
    return offsets, integers(value for row in lists for value in row)


def taken_rows(offsets: Integers, values: Integers, chosen: Integers) -> tuple[Integers, Integers, Integers]:
    """The `chosen` of compressed rows: their offsets, their values, and for each value the place of its row."""
    lengths = np.diff(offsets)[chosen]
    found = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(lengths, out=found[1:])
    place = np.repeat(np.arange(len(chosen)), lengths)
    within = np.arange(len(place)) - found[place]
    return found, values[offsets[chosen][place] + within], place
