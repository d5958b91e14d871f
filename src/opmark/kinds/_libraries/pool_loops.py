"""Counts of how often the loops of ONNX Runtime's pooling run (core/mlas/lib/pooling.cpp and snchwc.cpp).

Blocked channels: three neighbouring positions at once, and those beside the padding, or left over, one by one. Plain
channels: a row of the image four columns at once over all rows of the window, then the result of that over the columns
of the window; a whole image four elements at once; anything else tap by tap.
"""

import math

from opmark.kinds._libraries.taps import taps_inside
from opmark.kinds._shared.pooling import PoolSizes
from opmark.kinds._shared.shapes import Shape

_POSITIONS_AT_ONCE = 3
_LANES = 4
_LONGEST_WINDOW = 32
_LARGEST_STRIDE = 2
_COLUMNS = ("loop_calls", "vector_steps", "single_steps", "across_steps", "taps")


def pool_steps(p: PoolSizes, output: Shape, dilation: Shape, block: int, *, scalar: bool) -> dict[str, float]:
    """The logarithms of how often each loop runs; `scalar` code goes tap by tap.

    `output` is the spatial shape of the result, `block` the width of the blocked channel layout, or 0.
    """
    inside = taps_inside(p, output, dilation)
    window_rows = math.prod(sum(taps) for taps in inside[:-1])
    output_rows, image, window = math.prod(output[:-1]), math.prod(p.size), p.kernel[-1]
    planes = p.batch * (-(-p.channels // block) if block else p.channels)
    whole = p.kernel == p.size and max(p.stride) == 1 and not any(p.pads)
    small = max(p.kernel) <= _LONGEST_WINDOW and p.stride[-1] <= _LARGEST_STRIDE and max(dilation) == 1
    in_rows = small and len(p.size) > 1
    counts = dict.fromkeys(_COLUMNS, 0)
    if block:
        groups, left = divmod(sum(taps == window for taps in inside[-1]), _POSITIONS_AT_ONCE)
        beside = sum(taps < window for taps in inside[-1])
        counts["loop_calls"] = planes * output_rows
        counts["vector_steps"] = planes * window_rows * window * groups
        counts["single_steps"] = planes * window_rows * window * (left + beside)
    elif scalar or not (whole or in_rows):
        counts["loop_calls"] = planes * math.prod(output)
        counts["taps"] = planes * window_rows * sum(inside[-1])
    elif whole:
        counts["loop_calls"] = planes
        counts["vector_steps"] = planes * (image // _LANES)
        counts["single_steps"] = planes * (image % _LANES)
    else:
        counts["loop_calls"] = planes * output_rows
        counts["vector_steps"] = planes * window_rows * (p.size[-1] // _LANES)
        counts["single_steps"] = planes * window_rows * (p.size[-1] % _LANES)
        counts["across_steps"] = planes * output_rows * -(-output[-1] * p.stride[-1] // _LANES) * window
    return {name: math.log1p(count) for name, count in counts.items()}
