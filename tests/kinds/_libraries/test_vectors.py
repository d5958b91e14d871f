"""A row is cut into whole vectors of 64 bytes, and what is left of them."""

import math

import pytest

from opmark.kinds._libraries.vectors import steps_of_row


@pytest.mark.parametrize(
    ("row", "dtype", "whole", "rest", "of_four"),
    [(15, "float32", 0, 15, 15), (16, "float32", 1, 0, 16), (65, "float32", 4, 1, 1), (40, "bfloat16", 1, 8, 40)],
)
def test_a_row_is_vectors_and_a_rest(row: int, dtype: str, whole: int, rest: int, of_four: int) -> None:
    told = steps_of_row(row, dtype)
    assert told["vector"] == pytest.approx(math.log1p(whole))
    assert told["vector_rest"] == pytest.approx(math.log1p(rest))
    assert told["vector_rest_share"] == pytest.approx(rest / row)
    assert told["four_vectors_rest"] == pytest.approx(math.log1p(of_four))


def test_an_empty_row_leaves_nothing() -> None:
    assert set(steps_of_row(0, "float32").values()) == {0.0}
