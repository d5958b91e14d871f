"""Counts of ONNX Runtime's pooling loops, worked by hand."""

from typing import Any

import numpy as np
import pytest

from opmark.kinds.pool import KIND, Pool

_USUAL: dict[str, Any] = {"op": "max", "batch": 1, "channels": 32, "size": (8, 10), "kernel": (3, 3)}
_USUAL |= {"stride": (1, 1), "pads": (1, 1, 1, 1), "dilation": (1, 1)}


def counts(**changes: Any) -> dict[str, int]:
    steps = KIND.steps(Pool(**{**_USUAL, **changes}))
    return {name: round(float(np.expm1(value))) for name, value in steps.items()}


def test_blocked_channels_take_three_positions_at_once() -> None:
    # 2 blocks, 8 rows of 10: 8 positions are whole, in 2 groups of 3 and 2 single ones, and 2 stand beside the padding;
    # the rows of the window meet 6 × 3 + 2 × 2 rows of the image
    found = counts(block=16)
    assert found == {
        "loop_calls": 2 * 8,
        "vector_steps": 2 * 22 * 3 * 2,
        "single_steps": 2 * 22 * 3 * (2 + 2),
        "across_steps": 0,
        "taps": 0,
    }


def test_plain_rows_are_reduced_four_columns_at_once() -> None:
    found = counts()
    assert found == {
        "loop_calls": 32 * 8,
        "vector_steps": 32 * 22 * 2,
        "single_steps": 32 * 22 * 2,
        "across_steps": 32 * 8 * 3 * 3,
        "taps": 0,
    }


def test_a_whole_image_is_one_row() -> None:
    found = counts(op="global-average", kernel=(8, 10), pads=(0,) * 4)
    assert (found["loop_calls"], found["vector_steps"], found["single_steps"]) == (32, 32 * 20, 0)
    found = counts(op="global-average", size=(3, 3), pads=(0,) * 4)
    assert (found["loop_calls"], found["vector_steps"], found["single_steps"]) == (32, 32 * 2, 32)


@pytest.mark.parametrize(
    "changes",
    [{"indices": True}, {"dilatable": True}, {"dtype": "uint8"}, {"stride": (3, 3)}, {"dilation": (2, 2)},
     {"kernel": (33, 33), "size": (40, 40)}, {"kernel": (8, 10), "stride": (3, 3), "pads": (0,) * 4}],
)  # fmt: skip
def test_other_code_goes_tap_by_tap(changes: dict[str, Any]) -> None:
    found = counts(**changes)
    assert found["taps"] > 0
    assert found["vector_steps"] == found["single_steps"] == found["across_steps"] == 0


def test_a_single_axis_goes_tap_by_tap() -> None:
    found = counts(size=(10,), kernel=(3,), stride=(1,), pads=(1, 1), dilation=(1,))
    assert (found["loop_calls"], found["taps"]) == (32 * 10, 32 * 28)
