"""The taps of a window inside an image are those whose place is one of its elements."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from opmark.kinds._libraries.taps import taps_inside
from opmark.kinds._shared.windows import valid_taps, window_outputs


@dataclass(frozen=True)
class Window:
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]


@given(
    sides=st.lists(
        st.tuples(*(st.integers(low, high) for low, high in ((1, 9), (1, 5), (1, 3), (0, 4), (0, 4), (1, 3)))),
        min_size=1,
        max_size=2,
    )
)
def test_they_are_counted_position_by_position(sides: list[tuple[int, ...]]) -> None:
    size, kernel, stride, before, after, dilation = zip(*sides, strict=True)
    output = window_outputs(size, kernel, stride, before + after, dilation)
    if min(output) < 1:
        return
    found = taps_inside(Window(size, kernel, stride, before + after), output, dilation)
    assert found == [
        [sum(0 <= o * s - b + t * d < n for t in range(k)) for o in range(m)]
        for n, k, s, b, d, m in zip(size, kernel, stride, before, dilation, output, strict=True)
    ]
    share = valid_taps(size, output, kernel=kernel, stride=stride, pads=before + after, dilation=dilation)
    inside = 1.0
    for taps, k in zip(found, kernel, strict=True):
        inside *= sum(taps) / (len(taps) * k)
    assert abs(share - inside) < 1e-12
