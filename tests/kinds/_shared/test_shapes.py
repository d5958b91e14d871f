"""Shape arithmetic: windows over padding, waste of tiles, transposes without what does not move."""

from itertools import product

import pytest

from opmark.kinds import KINDS
from opmark.kinds._shared.movement import Movement, moved_axes, squeezed
from opmark.kinds._shared.windows import valid_taps, waste, window_output, window_outputs
from opmark.kinds.norm import Norm


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "dilation"), list(product((1, 3, 5), (1, 2, 3), (0, 1, 4), (1, 2)))
)
def test_valid_taps_are_those_that_meet_the_image(kernel: int, stride: int, pad: int, dilation: int) -> None:
    size = 11
    positions = window_output(size, kernel, stride, (pad, pad), dilation)
    met = sum(
        0 <= position * stride - pad + tap * dilation < size for position in range(positions) for tap in range(kernel)
    )
    found = valid_taps((size,), (positions,), kernel=(kernel,), stride=(stride,), pads=(pad, pad), dilation=(dilation,))
    assert found == pytest.approx(met / (positions * kernel))


def test_a_window_that_hangs_over_the_end_starts_inside() -> None:
    hanging = {"pads": (0, 0), "dilation": (1,), "ceil": True}
    assert window_outputs((5,), (2,), (2,), **hanging) == (3,)
    assert window_outputs((4,), (1,), (3,), **hanging) == (2,)
    assert window_outputs((4,), (3,), (5,), **hanging) == (1,)


def test_whole_tiles_waste_nothing() -> None:
    assert waste(12, 6) == 0
    assert waste(7, 6) == pytest.approx(12 / 7 - 1)


def test_a_transpose_is_told_without_what_does_not_move() -> None:
    assert squeezed((1, 196, 8, 16), (0, 2, 3, 1)) == ((196, 128), (1, 0))
    assert squeezed((2, 3, 4, 5), (0, 2, 1, 3)) == ((2, 3, 4, 5), (0, 2, 1, 3))
    assert squeezed((1, 1, 1600, 16), (0, 2, 1, 3)) == ((25600,), (0,))
    assert squeezed((1, 1), (1, 0)) == ((), ())
    assert [moved_axes(order) for order in ((), (0, 1), (1, 0), (0, 2, 1), (2, 1, 0))] == [0, 0, 1, 1, 2]


def test_runs_of_a_movement_are_what_is_copied_at_once() -> None:
    kind = KINDS.load("movement")
    view = Movement(op="transpose", shapes=((1, 1, 1600, 16),), arguments=(0, 2, 1, 3))
    assert kind.features(view)["run"] == 25600
    heads = Movement(op="transpose", shapes=((1, 196, 8, 16),), arguments=(0, 2, 1, 3))
    assert (kind.features(heads)["run"], kind.features(heads)["runs"]) == (16, 1568)
    parts = Movement(op="split", shapes=((4, 10, 6),), arguments=(1, 4, 6))
    assert (kind.features(parts)["run"], kind.features(parts)["runs"]) == (30, 8)


def test_batch_normalisation_of_vectors_runs_along_the_row() -> None:
    found = KINDS.load("norm").features(Norm(op="batch", shape=(49, 128), axis=1))
    assert (found["rows"], found["columns"]) == (49, 128)
