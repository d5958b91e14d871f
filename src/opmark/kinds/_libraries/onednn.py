"""The code of oneDNN that computes a convolution of PyTorch, and what this code copies and repeats.

PyTorch's tensors are plain or have channels last. oneDNN has its own layouts for some codes, and copies into them and
back at every call. Sizes alone choose the code: a depthwise filter that reaches too far over the edge takes twenty
times as long. The rules follow oneDNN 3.12 on processors with AVX-512 (`init_conf` of its convolutions in src/cpu/x64),
and agree with what it reports of 97 to 99.7 % of the released convolutions (decision 0049).
"""

import math
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.kinds._shared.convolution import ConvolutionSizes
from opmark.kinds._shared.shapes import Shape

# PyTorch's thresholds for one thread (`use_mkldnn` in aten/src/ATen/native/Convolution.cpp, 2.13): samples and input
# elements from which it takes oneDNN, and the largest filter for which it may do without.
_MANY_SAMPLES = 16
_MANY_ELEMENTS = 20480
_SMALL_FILTER = 3
# Numbers in a vector register, and the narrower vectors that grouped channels may fill instead.
_LANES = 16
_NARROWER = (16, 8, 4)
# Positions of a row that a direct and a depthwise convolution hold in registers at once, and vectors of filters.
_DIRECT_POSITIONS = 28
_DEPTHWISE_POSITIONS = 6
_MOST_FILTER_VECTORS = 5
# With fewer channels a product in blocks (`brgemm`) is not worthwhile.
_FEWEST_CHANNELS = 7
# Beyond this width, a depthwise filter's gradient has no code of its own.
_WIDEST_DEPTHWISE_GRADIENT = 4

# PyTorch's own code, and oneDNN's: a product of column matrices, filters over blocked channels, over the plain channels
# of a first layer, of one tap, of one channel, products of blocks, those for strides, and code for narrower vectors.
OWN = "own"
COLUMNS = "columns"
DIRECT = "direct"
FLAT = "flat"
POINTWISE = "pointwise"
DEPTHWISE = "depthwise"
BLOCKS = "blocks"
STRIDED_BLOCKS = "strided_blocks"
NARROW = "narrow"
# Codes that read a copy of a plain image in a layout of their own; all but `BLOCKS` also write such a result.
_COPIES_BOTH = frozenset({DIRECT, POINTWISE, DEPTHWISE, STRIDED_BLOCKS, NARROW})


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A convolution over two axes; channels are those of one group, `pads` those at the beginnings."""

    batch: int
    groups: int
    channels_in: int
    channels_out: int
    size: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    pads: Shape
    output: Shape
    dtype: str
    channels_last: bool

    @property
    def depthwise(self) -> bool:
        """True if every channel has a filter of its own."""
        return self.groups > 1 and self.channels_in == self.channels_out == 1

    @property
    def pointwise(self) -> bool:
        """True if the filter has one tap."""
        return math.prod(self.kernel) == 1

    @property
    def divides(self) -> bool:
        """True if strides cut the image without a rest, and nothing is padded."""
        cut = all(n == m * s for n, m, s in zip(self.size, self.output, self.stride, strict=True))
        return cut and not any(self.pads)

    @property
    def lanes(self) -> int:
        """The widest vectors that the channels of every group fill; 0 if there are none."""
        if self.groups == 1:
            return _LANES
        fits = (n for n in _NARROWER if self.channels_in % n == 0 and self.channels_out % n == 0)
        return next(fits, 0)

    @property
    def input_bytes(self) -> int:
        """The size of the image."""
        return self.batch * self.groups * self.channels_in * math.prod(self.size) * DTYPE_BYTES[self.dtype]

    @property
    def output_bytes(self) -> int:
        """The size of the result."""
        return self.batch * self.groups * self.channels_out * math.prod(self.output) * DTYPE_BYTES[self.dtype]

    @property
    def weight_bytes(self) -> int:
        """The size of the weights."""
        weights = self.groups * self.channels_in * self.channels_out * math.prod(self.kernel)
        return weights * DTYPE_BYTES[self.dtype]


def window(p: ConvolutionSizes, output: Shape, dtype: str, *, channels_last: bool) -> Window:
    """The convolution `p` with this `output`'s spatial shape; a single axis becomes the width."""
    axes = len(p.size)
    ones, none = (1,) * (2 - axes), (0,) * (2 - axes)
    return Window(
        batch=p.batch,
        groups=p.groups,
        channels_in=p.channels_in // p.groups,
        channels_out=p.channels_out // p.groups,
        size=ones + p.size,
        kernel=ones + p.kernel,
        stride=ones + p.stride,
        dilation=ones + p.dilation,
        pads=none + p.pads[:axes],
        output=ones + output,
        dtype=dtype,
        channels_last=channels_last,
    )


def is_too_small(*, batch: Any, elements: Any, kernel: tuple[Any, Any], stride: Any, dilation: Any, groups: Any) -> Any:
    """True if PyTorch hands no 32-bit convolution of these sizes, numbers or arrays, to oneDNN on one thread."""
    height, width = kernel
    worthwhile = (stride > 1) | (dilation > 1) | (batch >= _MANY_SAMPLES) | (height * width > 1)
    wide = (height > _SMALL_FILTER) & (width > _SMALL_FILTER)
    return (worthwhile & ((groups > 1) | wide | (batch > 1) | (elements > _MANY_ELEMENTS))) ^ True


def is_without_onednn(w: Window) -> bool:
    """True if PyTorch computes a pass on one thread with its own column matrices and product."""
    too_small = is_too_small(
        batch=w.batch,
        elements=w.batch * w.groups * w.channels_in * math.prod(w.size),
        kernel=(w.kernel[0], w.kernel[1]),
        stride=max(w.stride),
        dilation=max(w.dilation),
        groups=w.groups,
    )
    return w.dtype == "float32" and bool(too_small)


def forward_code(w: Window) -> str:
    """The code of a forward convolution."""
    if is_without_onednn(w):
        return OWN
    if w.depthwise:
        if w.channels_last and max(w.dilation) == 1:
            return BLOCKS
        return DEPTHWISE if _edges_fit(w, _DEPTHWISE_POSITIONS) else COLUMNS
    if w.channels_last:
        narrow = w.groups > 1 and max(w.channels_in, w.channels_out) < _LANES and w.lanes > 0
        return DIRECT if narrow or w.channels_out < _FEWEST_CHANNELS else BLOCKS
    if w.groups == 1 and w.pointwise and w.divides:
        return POINTWISE
    if not w.lanes or not _edges_fit(w, _DIRECT_POSITIONS):
        return COLUMNS
    return FLAT if w.groups == 1 and w.channels_in < _LANES else DIRECT


def input_gradient_code(w: Window) -> str:
    """The code of the gradient of a convolution's input."""
    if is_without_onednn(w):
        return OWN
    strided, dilated = max(w.stride) > 1, max(w.dilation) > 1
    if w.depthwise:
        if dilated:
            return DIRECT if w.channels_last and not strided else COLUMNS
        return STRIDED_BLOCKS if strided and w.dtype == "bfloat16" else DEPTHWISE
    if strided:
        if dilated:
            return COLUMNS
        return DIRECT if w.groups > 1 and w.channels_out < _LANES else STRIDED_BLOCKS
    if w.channels_last:
        return DIRECT if w.channels_out < _FEWEST_CHANNELS else BLOCKS
    if w.pointwise and w.groups == 1:
        return POINTWISE
    return DIRECT if w.lanes and _edges_fit(w, _DIRECT_POSITIONS) else COLUMNS


def weight_gradient_code(w: Window) -> str:
    """The code of the gradient of a convolution's weights."""
    if is_without_onednn(w):
        return OWN
    strided, dilated = max(w.stride) > 1, max(w.dilation) > 1
    if w.depthwise:
        wide = max(w.kernel) > _WIDEST_DEPTHWISE_GRADIENT
        if not dilated and not wide and not (w.pointwise and strided):
            return DEPTHWISE
        return DIRECT if w.channels_last and not dilated else COLUMNS
    if dilated and strided:
        return COLUMNS
    if w.groups > 1:
        if w.channels_last or w.lanes == _LANES:
            return DIRECT
        return NARROW if w.lanes == _LANES // 2 and w.dtype == "float32" else COLUMNS
    if w.pointwise:
        return POINTWISE if w.divides and (w.dtype == "bfloat16" or not w.channels_last) else DIRECT
    if w.channels_in >= _LANES or w.channels_last:
        return DIRECT
    if w.dtype == "bfloat16":
        return FLAT if w.channels_out % _LANES == 0 else COLUMNS
    return FLAT if w.channels_in <= 3 else NARROW


def forward_code_path(w: Window) -> dict[str, float]:
    """The code of a forward convolution, and what it copies and repeats."""
    code = forward_code(w)
    flags = {f"by_{name}": float(code == name) for name in (OWN, COLUMNS, FLAT, POINTWISE, DEPTHWISE, BLOCKS)}
    vectors = math.ceil(w.channels_out / _LANES)
    at_once = max(n for n in range(1, _MOST_FILTER_VECTORS + 1) if vectors % n == 0)
    positions = _DEPTHWISE_POSITIONS if code == DEPTHWISE else _DIRECT_POSITIONS
    row = w.output[1]
    return flags | {
        "empty_lanes": math.log(_LANES / (w.lanes or _LANES)) if code in {DIRECT, COLUMNS} else 0.0,
        "copied_bytes": math.log1p(_copied_bytes(w, code)),
        "column_bytes": math.log1p(_column_bytes(w, code)),
        "products": math.log1p(_products(w, code)),
        "vector_steps": math.log(_vector_steps(w, code)),
        "positions_at_once": math.log(min(row, positions)),
        "row_waste": math.log(-(-row // positions) * positions / row),
        "filters_at_once": math.log(at_once),
    }


def gradient_code_path(w: Window, *, input_gradient: bool, weight_gradient: bool) -> dict[str, float]:
    """The codes of both gradients, in columns of their own, and what they copy and repeat together."""
    first = input_gradient_code(w) if input_gradient else ""
    second = weight_gradient_code(w) if weight_gradient else ""
    found = {
        f"input_by_{name}": float(first == name)
        for name in (COLUMNS, DIRECT, POINTWISE, DEPTHWISE, BLOCKS, STRIDED_BLOCKS)
    }
    found |= {
        f"weight_by_{name}": float(second == name) for name in (COLUMNS, DIRECT, FLAT, POINTWISE, DEPTHWISE, NARROW)
    }
    codes = [code for code in (first, second) if code]
    return found | {
        "empty_lanes": math.log(_LANES / (w.lanes or _LANES)),
        "copied_bytes": math.log1p(sum(_copied_bytes(w, code) for code in codes)),
        "column_bytes": math.log1p(sum(_column_bytes(w, code) for code in codes)),
        "products": math.log1p(sum(_products(w, code) for code in codes)),
        "vector_steps": math.log(sum(_vector_steps(w, code) for code in codes) or 1.0),
        "positions_at_once": math.log(min(w.output[1], _DIRECT_POSITIONS)),
    }


def _edges_fit(w: Window, positions: int) -> bool:
    """True if no filter lies in the padding only, and padding reaches no further than the positions held at once."""
    row, step = w.output[1], w.stride[1]
    reach = (w.kernel[1] - 1) * w.dilation[1] + 1
    held = min(row, positions)
    before = w.pads[1]

    def after(outputs: int) -> int:
        return max(0, (outputs - 1) * step + reach - w.size[1] - before)

    return max(before, after(row)) < reach and max(before, after(row - row % held)) <= held


def _copied_bytes(w: Window, code: str) -> int:
    """Bytes that a pass copies from and to PyTorch's layouts; PyTorch's own code copies channels last into planes."""
    if code == OWN:
        return w.input_bytes if w.channels_last else 0
    if code == COLUMNS:
        return 0
    images = w.input_bytes * (code in _COPIES_BOTH) + w.output_bytes * (code != BLOCKS)
    return w.weight_bytes + (0 if w.channels_last else images)


def _column_bytes(w: Window, code: str) -> int:
    """Bytes of the matrix of columns; a filter of one tap needs none."""
    if code not in {OWN, COLUMNS} or w.pointwise:
        return 0
    columns = w.batch * w.groups * w.channels_in * math.prod(w.kernel) * math.prod(w.output)
    return columns * DTYPE_BYTES[w.dtype]


def _products(w: Window, code: str) -> int:
    """Matrix products: one for each group of each sample."""
    return w.batch * w.groups if code in {OWN, COLUMNS} else 0


def _vector_steps(w: Window, code: str) -> float:
    """Multiplications of whole vectors."""
    taps = w.batch * math.prod(w.kernel) * math.prod(w.output)
    if w.depthwise:
        return taps * math.ceil(w.groups / _LANES)
    lanes = w.lanes or _LANES
    vectors = math.ceil(w.channels_out / lanes)
    channels = w.channels_in if code in {FLAT, OWN, COLUMNS} else math.ceil(w.channels_in / lanes) * lanes
    return taps * w.groups * vectors * channels
