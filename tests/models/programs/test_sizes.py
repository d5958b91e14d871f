"""Open sizes: arithmetic alone, by the names of the file or by place."""

from pathlib import Path
from typing import Any

import pytest

from opmark.core.errors import ContentError, UsageError
from opmark.models.programs.sizes import input_shapes

FILE = Path("x.pt2")


def size(text: str) -> dict[str, Any]:
    return {"as_expr": {"expr_str": text, "hint": None}}


def shapes(*sizes: dict[str, Any], **dimensions: int) -> list[tuple[int, ...]]:
    ranges = {"s0": {"min_val": 2, "max_val": 9}}
    return input_shapes([("x", sizes)], ranges, {key.replace("_", "."): one for key, one in dimensions.items()}, FILE)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2*s0 + 1", 7),
        ("s0//2", 1),
        ("Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(-1))", 5),
        ("FloorDiv(Symbol('s0'), Integer(2))", 1),
        ("s0 - 3", 0),
    ],
)
def test_expressions_are_computed(text: str, found: int) -> None:
    assert shapes(size("Symbol('s0', positive=True, integer=True)"), size(text), s0=3) == [(3, found)]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "s0.__class__", "(lambda: 1)()", "[1][0]", "s0**9", "f(s0)", "s0/0", "s0-9",
        "'a'", "s0//0", "1 if s0 else 2", "+".join(["s0"] * 200), "10**99", "unknown + 1",
    ],
)  # fmt: skip
def test_anything_else_is_no_size(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        shapes(size("s0"), size(text), s0=3)


def test_one_dimension_has_one_size() -> None:
    with pytest.raises(UsageError, match="given with two sizes"):
        shapes(size("s0"), size("s0"), x_0=3, x_1=4)
    with pytest.raises(UsageError, match="exported for 2 to 9"):
        shapes(size("s0"), s0=10)
    with pytest.raises(ContentError, match="leaves dimension 0 open"):
        shapes(size("s0"))
