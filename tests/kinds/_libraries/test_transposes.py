"""Codes of ONNX Runtime's transposes, by its own rules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.kinds._libraries.transposes import moved_axis, no_code_path, transpose_code_path


def code(shape: tuple[int, ...], order: tuple[int, ...], dtype: str = "float32") -> str:
    told = transpose_code_path(shape, order, dtype)
    return " ".join(name.removeprefix("by_") for name, value in told.items() if name.startswith("by_") and value)


@pytest.mark.parametrize(
    ("order", "move"),
    [
        ((0, 1, 2), None),
        ((0, 2, 1), (2, 1)),
        ((0, 2, 3, 1), (1, 3)),
        ((0, 3, 1, 2), (3, 1)),
        ((1, 2, 3, 0), (0, 3)),
        ((3, 2, 1, 0), None),
        ((0, 3, 2, 1), None),
        ((1, 0, 3, 2), None),
    ],
)
def test_a_single_axis_moves_or_none(order: tuple[int, ...], move: tuple[int, int] | None) -> None:
    assert moved_axis(order) == move


@given(st.integers(2, 6), st.data())
def test_taking_the_moved_axis_to_its_place_gives_the_order(rank: int, data: st.DataObject) -> None:
    leaves, takes = data.draw(st.lists(st.integers(0, rank - 1), min_size=2, max_size=2, unique=True))
    rest = [axis for axis in range(rank) if axis != leaves]
    order = (*rest[:takes], leaves, *rest[takes:])
    found = moved_axis(order)
    assert found is not None
    rest = [axis for axis in range(rank) if axis != found[0]]
    assert (*rest[: found[1]], found[0], *rest[found[1] :]) == order


@pytest.mark.parametrize(
    ("shape", "order", "dtype", "expected"),
    [
        ((1, 64, 16, 16), (0, 2, 3, 1), "float32", "matrix"),
        ((1, 64, 16, 16), (0, 2, 3, 1), "uint8", "matrix"),
        ((1, 64, 16, 16), (0, 2, 3, 1), "int64", "words"),
        ((1, 23, 8, 8), (0, 2, 1, 3), "uint8", "words"),
        ((1, 197, 12, 64), (0, 2, 1, 3), "float32", "strided"),
        ((2, 3, 4, 5), (1, 2, 0, 3), "float32", "blocks"),
        ((2, 3, 4), (2, 1, 0), "float32", "places"),
        ((2, 3, 4, 5), (2, 1, 0, 3), "float32", "places_of_blocks"),
        ((1, 64, 1, 1), (0, 2, 3, 1), "float32", ""),
        ((2, 3, 4), (0, 1, 2), "float32", ""),
    ],
)
def test_the_moving_axis_and_the_bytes_behind_it_choose_the_code(
    shape: tuple[int, ...], order: tuple[int, ...], dtype: str, expected: str
) -> None:
    assert code(shape, order, dtype) == expected


def test_channels_to_the_end_are_a_matrix_of_channels_and_positions() -> None:
    """2 images of 10 channels of 9 positions: tiles of 4 by 4 cover 8 by 8 of 10 by 9."""
    told = transpose_code_path((2, 10, 3, 3), (0, 2, 3, 1), "float32")
    assert [round(math.exp(told[name])) for name in ("matrices", "rows", "columns", "units")] == [2, 10, 9, 180]
    assert told["outside_tiles"] == pytest.approx(1 - 64 / 90)
    assert told["read_collisions"] == 2
    assert told["write_collisions"] == 3


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5), st.randoms(), st.sampled_from(["uint8", "float32", "int64"])
)
def test_every_transpose_has_the_same_columns(shape: list[int], source: object, dtype: str) -> None:
    order = list(range(len(shape)))
    source.shuffle(order)  # type: ignore[attr-defined]
    told = transpose_code_path(tuple(shape), tuple(order), dtype)
    assert list(told) == list(no_code_path())
    assert all(math.isfinite(value) for value in told.values())
