"""Counts of how often ONNX Runtime's blocked convolutions loop (core/mlas/lib/x86_64/SconvKernelAvx512F.S).

They compute a row of the result: six positions at once where the whole window lies inside, then three or two, and one
by one what is left and what stands beside the padding. Filters go four vectors at once, input channels one by one.
"""

import math

from opmark.kinds._libraries.taps import taps_inside
from opmark.kinds._shared.convolution import Convolution

_FILTERS_AT_ONCE = 4
_COLUMNS = ("loop_calls", "six_steps", "few_steps", "single_steps")


def blocked_steps(p: Convolution, block: int) -> dict[str, float]:
    """The logarithms of how often each loop runs, all 0 where `block`, the width of the channel layout, is 0."""
    counts = dict.fromkeys(_COLUMNS, 0)
    if block:
        rows, taps, whole, beside = _rows(p)
        depthwise = 1 < p.groups == p.channels_in
        if depthwise:
            passes, channels = p.batch * -(-p.channels_in // block), 1
        else:
            vectors = -(-p.channels_out // p.groups // block)
            passes, channels = p.batch * p.groups * -(-vectors // _FILTERS_AT_ONCE), p.channels_in // p.groups
        sixes, left = divmod(whole, 6)
        threes, left = divmod(left, 3)
        twos, ones = divmod(left, 2)
        steps = passes * channels * taps
        counts["loop_calls"] = passes * -(-channels // block) * rows
        counts["six_steps"] = steps * sixes
        counts["few_steps"] = steps * (threes + twos)
        counts["single_steps"] = steps * (ones + beside)
    return {name: math.log1p(count) for name, count in counts.items()}


def _rows(p: Convolution) -> tuple[int, int, int, int]:
    """Rows of the result, taps of all of them, and positions of one with a whole window, and with a part of it."""
    output = p.output_size
    if math.prod(p.kernel) == 1 and max(p.stride) == 1 and not any(p.pads):
        # the image is one row
        return 1, 1, math.prod(output), 0
    inside = taps_inside(p, output, p.dilation)
    window = p.kernel[-1]
    whole = sum(taps == window for taps in inside[-1])
    return math.prod(output[:-1]), math.prod(sum(taps) for taps in inside[:-1]) * window, whole, output[-1] - whole
