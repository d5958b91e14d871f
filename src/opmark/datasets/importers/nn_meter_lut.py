"""nn-Meter's look-up tables of blocks on phones and ONNX Runtime, each a JSON object of `name: milliseconds`.

microsoft/nn-Meter, `nn_meter/predictor/*/lut/*.json`. A name contains the shape, as in
`conv_88_16_24_6_1_hard_swish_5`: input height, channels in and out, expansion, stride, activation, kernel. A first
convolution (`firstconv_224_3_16_2_3`) is one kernel; every other block has several, and becomes a network of the
block's family.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.core.reading import parse_json, read_text
from opmark.datasets.importing.importer import ImportedRow, Runtime, TableImporter, kernel_with

_FIRST = re.compile(r"firstconv" + r"_([0-9]{1,9})" * 5 + r"(?:_(?P<activation>[a-z_]+))?")
_FAMILY = re.compile(r"([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z]+)*)(?:_[0-9][A-Za-z0-9_.+-]*)?")
# The name of the next entry is near: a search to the end for each that is written otherwise would take hours.
_NEAR = 4096


class NnMeterLut(TableImporter):
    """Blocks of convolutional and mixed networks."""

    title = "nn-Meter's block look-up tables (JSON)"
    source = "github.com/microsoft/nn-Meter"
    attribution = "Microsoft Corporation"
    licence = "MIT"
    label = "the mean of repeated runs of a block on its own"
    samples = 1

    def entries(self, path: Path) -> Iterator[ImportedRow]:
        """Read every row."""
        backend = "onnxruntime" if "onnx" in path.stem else "tflite"
        runtime = Runtime(backend=backend, provider="cpu", hardware="")
        for name, line, latency_ms in _pairs(path):
            where = f"{path}: line {line}"
            if isinstance(latency_ms, bool) or not isinstance(latency_ms, (int, float)):
                raise ContentError(f"{latency_ms!r} is not a number", where=f"{where}: {name}")
            if not (math.isfinite(latency_ms) and latency_ms > 0):
                raise ContentError(f"{latency_ms} is not a latency", where=f"{where}: {name}")
            family = _FAMILY.fullmatch(name)
            if family is None:
                raise ContentError("not the name of a block", where=f"{where}: {name}")
            first = _FIRST.fullmatch(name)
            yield ImportedRow(
                where=where,
                runtime=runtime,
                latency_ns=latency_ms * 1e6,
                kernel=None if first is None else _convolution(first),
                network="" if first else name,
                family=family[1],
            )


def _pairs(path: Path) -> list[tuple[str, int, Any]]:
    text = read_text(path)
    content = parse_json(text.encode(), str(path))
    if not isinstance(content, dict):
        raise ContentError("not an object of names and milliseconds", where=f"{path}: line 1")
    found, at, line = [], 0, 1
    for name, value in content.items():
        place = text.find(json.dumps(name), at, at + len(name) + _NEAR)
        if place >= 0:
            line += text.count("\n", at, place)
            at = place
        found.append((name, line, value))
    return found


def _convolution(name: "re.Match[str]") -> Kernel:
    size, channels_in, channels_out, stride, kernel = (int(name[group]) for group in range(1, 6))
    pad = kernel // 2
    activation = {"hard_swish": "hard-swish", "hswish": "hard-swish", "relu": "relu", "relu6": "clip"}
    return kernel_with(
        "conv",
        batch=1,
        channels_in=channels_in,
        channels_out=channels_out,
        size=(size, size),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pads=(pad,) * 4,
        dilation=(1, 1),
        activation=activation.get(name["activation"] or "", ""),
    )


IMPORTER = NnMeterLut()
