"""Kernels of one size tell apart the loops that libraries have for them."""

from typing import Any

import pytest

from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS


def told(kind: str, what: str, **parameters: Any) -> dict[str, float]:
    family: Any = KINDS.load(kind)
    found: dict[str, float] = getattr(family, what)(family.parse(Kernel.of(kind, parameters)))
    return found


def chosen(condition: tuple[int, ...], op: str = "qlinear-where", dtype: str = "uint8") -> dict[str, float]:
    shapes = (condition, (2, 8, 5, 7), ())
    return told("elementwise", "code_path", op=op, shapes=shapes, constant=(2,), dtype=dtype)


def test_a_choice_tells_how_its_flags_repeat() -> None:
    whole, mask, channel, single = map(chosen, ((2, 8, 5, 7), (2, 1, 5, 7), (8, 1, 1), ()))
    assert [one["by_kept"] for one in (whole, mask, channel, single)] == [0, 0, 1, 0]
    assert [one["by_flag"] for one in (whole, mask, channel, single)] == [0, 0, 0, 1]
    assert whole["flags"] > mask["flags"] > channel["flags"] > single["flags"] == 0
    # over the mask's channels, its flags begin anew after each image
    assert whole["run"] > mask["run"] == channel["run"]


@pytest.mark.parametrize(
    ("second", "kept"), [((2, 8, 5, 7), 0), ((8, 1, 1), 1), ((2, 1, 5, 7), 0), ((7,), 0), ((2, 8, 5, 1), 1)]
)
def test_a_loop_keeps_an_input_that_is_broadcast_along_the_last_axis(second: tuple[int, ...], kept: float) -> None:
    found = told("elementwise", "code_path", op="add", shapes=((2, 8, 5, 7), second), dtype="float32")
    assert found["by_kept"] == kept
    assert found["flags"] == found["by_flag"] == 0


def test_flags_that_are_computed_choose_nothing() -> None:
    found = told("elementwise", "code_path", op="and", shapes=((4, 9), (4, 9)), dtype="bool")
    assert found["flags"] == found["by_flag"] == 0


def test_torch_multiplies_fewer_than_400_products_in_loops() -> None:
    sizes = {"batch_a": (8,), "batch_b": (8,), "m": 4, "k": 4, "dtype": "float32"}
    assert told("matmul", "code_path", **sizes, n=24)["by_loops"] == 1
    assert told("matmul", "code_path", **sizes, n=25)["by_loops"] == 0


def test_a_single_matrix_is_reduced_by_columns() -> None:
    flags = [
        told("reduce", "code_path", op="sum", axes=(1,), shape=shape, dtype="float32")["by_columns"]
        for shape in ((1, 16, 8, 8), (2, 16, 8, 8), (1, 16))
    ]
    assert flags == [1, 0, 0]


def test_a_cast_tells_its_type_and_other_movements_none() -> None:
    cast = told("movement", "steps", op="cast", shapes=((4, 9),), to="int64", dtype="float32")
    assert [name for name, value in cast.items() if value] == ["to_int64"]
    assert not any(told("movement", "steps", op="copy", shapes=((4, 9),), dtype="float32").values())


@pytest.mark.parametrize("kind", ["softmax", "softmax-backward"])
def test_softmax_takes_vectors_along_the_last_axis_or_across_another(kind: str) -> None:
    along = told(kind, "steps", shape=(4, 40), axis=1, dtype="float32")
    across = told(kind, "steps", shape=(3, 5, 8, 5), axis=1, dtype="float32")
    assert along == across
    assert along["vector_rest_share"] == pytest.approx(8 / 40)
