"""Counts of ONNX Runtime's blocked convolutions, worked by hand."""

from typing import Any

import numpy as np

from opmark.kinds.conv import KIND, Conv

_USUAL: dict[str, Any] = {"batch": 2, "channels_in": 32, "channels_out": 96, "size": (8, 13), "kernel": (3, 3)}
_USUAL |= {"stride": (1, 1), "pads": (1, 1, 1, 1), "dilation": (1, 1), "groups": 1, "bias": False, "block": 16}


def counts(**changes: Any) -> dict[str, int]:
    steps = KIND.steps(Conv(**{**_USUAL, **changes}))
    return {name: round(float(np.expm1(value))) for name, value in steps.items()}


def test_a_row_goes_by_six_then_three_or_two_then_one() -> None:
    # 6 vectors of filters in 2 passes; of 13 positions, 11 are whole: a group of 6, one of 3, one of 2; 2 beside
    found = counts()
    taps = 2 * 2 * 32 * 22 * 3
    assert found == {"loop_calls": 2 * 2 * 2 * 8, "six_steps": taps, "few_steps": 2 * taps, "single_steps": 2 * taps}


def test_a_filter_of_each_channel_has_no_other_input() -> None:
    found = counts(channels_in=32, channels_out=32, groups=32, size=(8, 9))
    # 7 whole positions: a group of 6 and a single one
    taps = 2 * 2 * 22 * 3
    assert found == {"loop_calls": 2 * 2 * 8, "six_steps": taps, "few_steps": 0, "single_steps": (1 + 2) * taps}


def test_a_filter_of_one_tap_takes_the_image_as_one_row() -> None:
    found = counts(kernel=(1, 1), pads=(0,) * 4, size=(4, 5))
    assert found["loop_calls"] == 2 * 2 * 2
    assert (found["six_steps"], found["few_steps"], found["single_steps"]) == (128 * 3, 128, 0)


def test_plain_channels_have_none_of_these_loops() -> None:
    assert not any(counts(block=0).values())
