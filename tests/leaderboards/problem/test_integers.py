"""Whole numbers as arrays: 64 bits or an error, lists as compressed rows."""

import pytest

from opmark.core.errors import ContentError
from opmark.leaderboards.problem.integers import integers, rows


def test_numbers_beyond_64_bits_are_refused() -> None:
    assert integers([1, -(2**63), 2**63 - 1]).tolist() == [1, -(2**63), 2**63 - 1]
    with pytest.raises(ContentError, match="a number is too large"):
        integers([2**63])


def test_lists_end_to_end() -> None:
    offsets, flat = rows([[3, 1], [], [2]])
    assert offsets.tolist() == [0, 2, 2, 3]
    assert flat.tolist() == [3, 1, 2]
    assert rows([])[0].tolist() == [0]
