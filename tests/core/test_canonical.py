"""One spelling, one identity."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.canonical import canonical_json, content_id, plain

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
KEYS = st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@dataclass(frozen=True)
class Point:
    x: int
    tail: tuple[int, ...] = ()


def test_dataclasses_mappings_and_tuples_become_json_types() -> None:
    assert plain({"p": Point(1, (2, 3)), 4: (5,)}) == {"p": {"x": 1, "tail": [2, 3]}, "4": [5]}
    assert plain(Point) is Point


def test_spelling_is_sorted_and_tight() -> None:
    assert canonical_json({"b": 1, "a": [True, None, "µ"]}) == '{"a":[true,null,"\\u00b5"],"b":1}'


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_key_order_does_not_matter(value: dict[str, object]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical_json(value) == canonical_json(backwards)
    assert content_id(value) == content_id(backwards)


@given(VALUES)
def test_lists_and_tuples_are_one(value: object) -> None:
    assert content_id([value, value]) == content_id((value, value))


@given(st.integers(), st.integers())
def test_different_content_has_another_id(first: int, second: int) -> None:
    assert (content_id([first]) == content_id([second])) == (first == second)


def test_id_has_the_asked_length() -> None:
    assert len(content_id({"a": 1})) == 16
    assert content_id({"a": 1}, length=40).startswith(content_id({"a": 1}))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_not_a_number_has_no_spelling(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json([value])
