"""The codes of oneDNN for convolutions: cases that it reported, and what it reports here."""

import json
import math
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from opmark.core.kernels.kind import Setting
from opmark.kinds import KINDS
from opmark.kinds._libraries import onednn
from opmark.kinds._libraries.onednn import Window

# oneDNN's names for the codes of a forward convolution, without the instruction set.
NAMES = {
    "x64:gemm:jit": onednn.COLUMNS,
    "jit": onednn.DIRECT,
    "jit_bf16": onednn.DIRECT,
    "jit_1x1": onednn.POINTWISE,
    "jit_bf16_1x1": onednn.POINTWISE,
    "jit_dw": onednn.DEPTHWISE,
    "brdgmm_dw": onednn.BLOCKS,
    "brg_conv_fwd": onednn.BLOCKS,
    "brgconv_1x1": onednn.BLOCKS,
}
RUN = """
import json, sys, torch
torch.set_num_threads(1)
for p in json.load(sys.stdin):
    layout = torch.channels_last if p["channels_last"] else torch.contiguous_format
    dtype = getattr(torch, p["dtype"])
    image = torch.zeros(p["batch"], p["channels_in"], *p["size"], dtype=dtype).contiguous(memory_format=layout)
    weight = torch.zeros(p["channels_out"], p["channels_in"] // p["groups"], *p["kernel"], dtype=dtype)
    print("next", flush=True)
    torch.conv2d(image, weight, None, p["stride"], p["pads"][:2], p["dilation"], p["groups"])
"""


def square(size: int, channels: tuple[int, int], kernel: int = 3, **changes: Any) -> Window:
    """A convolution of a square image with a square filter, padded so that the image keeps its size at stride 1."""
    stride, dilation = changes.pop("stride", 1), changes.pop("dilation", 1)
    pad = changes.pop("pad", dilation * (kernel - 1) // 2)
    output = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    usual = {"batch": 1, "groups": 1, "dtype": "float32", "channels_last": False}
    return Window(
        channels_in=channels[0],
        channels_out=channels[1],
        size=(size, size),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        dilation=(dilation, dilation),
        pads=(pad, pad),
        output=(output, output),
        **(usual | changes),
    )


@pytest.mark.parametrize(
    ("window", "code"),
    [
        (square(28, (64, 64)), onednn.DIRECT),
        (square(224, (3, 64)), onednn.FLAT),
        (square(7, (64, 64), 1), onednn.OWN),
        (square(28, (64, 64), 1, stride=2), onednn.POINTWISE),
        (square(29, (64, 64), 1, stride=2), onednn.DIRECT),
        (square(56, (64, 64), 1, dtype="bfloat16"), onednn.POINTWISE),
        (square(56, (64, 64), channels_last=True), onednn.BLOCKS),
        (square(118, (10, 8), 5, stride=5, pad=0, channels_last=True), onednn.BLOCKS),
        (square(56, (1, 1), groups=96), onednn.DEPTHWISE),
        (square(56, (1, 1), groups=96, channels_last=True), onednn.BLOCKS),
        (square(103, (1, 1), 11, groups=16, dilation=2, pad=10, batch=8), onednn.COLUMNS),
        (square(113, (1, 1), 8, groups=208, dilation=2, pad=7, stride=2), onednn.COLUMNS),
        (square(11, (10, 10), groups=18), onednn.COLUMNS),
        (square(6, (8, 8), groups=4, dtype="bfloat16"), onednn.DIRECT),
        (square(2, (16, 32), 7, stride=2), onednn.COLUMNS),
    ],
)
def test_sizes_choose_the_code_of_a_forward_convolution(window: Window, code: str) -> None:
    assert onednn.forward_code(window) == code


@pytest.mark.parametrize(
    ("window", "of_input", "of_weight"),
    [
        (square(56, (64, 64), groups=2), onednn.DIRECT, onednn.DIRECT),
        (square(112, (1, 1), 5, groups=16, dtype="bfloat16"), onednn.DEPTHWISE, onednn.COLUMNS),
        (square(69, (200, 300), 1, stride=2), onednn.STRIDED_BLOCKS, onednn.DIRECT),
        (square(80, (32, 24), 1, stride=2), onednn.STRIDED_BLOCKS, onednn.POINTWISE),
        (square(84, (10, 32), 11, dilation=2, channels_last=True), onednn.BLOCKS, onednn.DIRECT),
        (square(10, (256, 256), 1), onednn.OWN, onednn.OWN),
        (square(104, (252, 16), 11, dilation=2, stride=2, dtype="bfloat16"), onednn.COLUMNS, onednn.COLUMNS),
    ],
)
def test_each_gradient_has_a_code_of_its_own(window: Window, of_input: str, of_weight: str) -> None:
    assert onednn.input_gradient_code(window) == of_input
    assert onednn.weight_gradient_code(window) == of_weight


def test_a_plain_image_is_copied_and_one_with_channels_last_is_not() -> None:
    """3×3 weights of 64 channels take 147,456 bytes, the image and the result 200,704 each."""
    plain = onednn.forward_code_path(square(28, (64, 64)))
    last = onednn.forward_code_path(square(28, (64, 64), channels_last=True))
    assert math.expm1(plain["copied_bytes"]) == pytest.approx(147_456 + 2 * 200_704)
    assert math.expm1(last["copied_bytes"]) == pytest.approx(147_456)


def test_a_matrix_of_columns_holds_every_tap_of_every_position() -> None:
    told = onednn.forward_code_path(square(11, (10, 10), groups=18))
    assert math.expm1(told["column_bytes"]) == pytest.approx(18 * 10 * 9 * 11 * 11 * 4)
    assert math.expm1(told["products"]) == pytest.approx(18)


def test_grouped_channels_fill_narrower_vectors() -> None:
    """8 of 16 lanes, so that 64 channels of 8 groups take twice as many steps as those of one group of 4 groups."""
    eight = onednn.forward_code_path(square(28, (8, 8), groups=8))
    sixteen = onednn.forward_code_path(square(28, (16, 16), groups=4))
    assert eight["empty_lanes"] == pytest.approx(math.log(2))
    assert sixteen["empty_lanes"] == 0
    assert eight["vector_steps"] == pytest.approx(sixteen["vector_steps"])


def test_most_codes_are_those_that_onednn_reports() -> None:
    """Sixty convolutions as suites draw them, in both layouts and both element types."""
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        pytest.skip("the rules are those of processors with AVX-512")
    kind = KINDS.load("conv")
    source = random.Random(1)
    kernels: list[Any] = []
    while len(kernels) < 60:
        values = {name: axis.at(source.random()) for name, axis in kind.space.items()}
        dtype = ("float32", "bfloat16")[len(kernels) % 2]
        p = kind.draw(values, Setting(language="aten", dtype=dtype))
        if p is not None and kind.work(p).flops < 50_000_000:
            kernels.append(p)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN],
        input=json.dumps([dict(kind.kernel(p).params) for p in kernels]),
        env=os.environ | {"ONEDNN_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    reported = [_code(part) for part in done.stdout.split("next\n")[1:]]
    told = [
        onednn.forward_code(onednn.window(p, p.output_size, p.dtype, channels_last=p.channels_last)) for p in kernels
    ]
    agreeing = sum(a == b or {a, b} == {onednn.FLAT, onednn.DIRECT} for a, b in zip(told, reported, strict=True))
    assert len(reported) == len(kernels)
    assert agreeing >= 54


def _code(report: str) -> str:
    """The code in oneDNN's report of one call; PyTorch's own where it has no convolution."""
    lines = [line.split(",") for line in report.splitlines() if ",exec," in line and ",convolution," in line]
    if not lines:
        return onednn.OWN
    name = lines[0][6].split(":avx")[0]
    return NAMES.get(name, name)
