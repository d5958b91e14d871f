"""NeuSight's operator tables, `data/dataset/<split>/<operator>.csv`: fp32 on one GPU, milliseconds.

Seonho Lee, Amar Phanishayee, Divya Mahajan: Forecasting GPU Performance for Deep Learning Training and Inference.
ASPLOS 2025. Columns: OPName, Latency, Device, Torch Version, and the dimensions of the operator. Cards with one chip
count as one device, because the tables of a device mix them: the A100's convolutions ran on the 80 GB card, whose
memory is a quarter faster, all else on the 40 GB card.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.datasets.importing.cells import Cells, rows
from opmark.datasets.importing.importer import ImportedRow, Runtime, TableImporter, kernel_with

_NEEDED = ("OPName", "Latency", "Device", "Torch Version")
_CHIP = re.compile(r"^(?:NVIDIA |Tesla )+(?:A100|V100|T4|P100|H100|L4)\b")
_UNARY = {"relu": "relu", "gelu": "gelu", "tanh": "tanh", "sigmoid": "sigmoid"}
_BINARY = {"add": "add", "mul": "mul", "div": "div", "pow": "pow", "sub": "sub"}


class NeuSight(TableImporter):
    """bmm, linear, conv, ln, softmax and elementwise operators."""

    title = "NeuSight's operator tables (CSV)"
    source = "github.com/sitar-lab/NeuSight"
    attribution = "the NeuSight authors"
    licence = "MIT"
    label = "the mean of the 5 smallest of 25 runs"
    samples = 5

    def entries(self, path: Path) -> Iterator[ImportedRow]:
        """Read every row."""
        for cells in rows(path, _NEEDED):
            operator = cells.text("OPName")
            if operator not in _READERS:
                raise ContentError(
                    f"unknown operator {operator!r}",
                    where=f"{cells.where}: OPName",
                    hint=f"known: {', '.join(sorted(_READERS))}",
                )
            needed, read = _READERS[operator]
            for column in needed:
                if column not in cells.values:
                    raise ContentError(f"no such column, and {operator} needs it", where=f"{cells.where}: {column}")
            version = cells.text("Torch Version").removeprefix("p")
            yield ImportedRow(
                where=cells.where,
                runtime=Runtime(backend="torch-cuda", version=version, hardware=_chip(cells.text("Device"))),
                latency_ns=cells.latency_ns("Latency", 1e6),
                kernel=read(cells),
            )


def _chip(device: str) -> str:
    known = _CHIP.match(device)
    return known[0] if known else device


def _linear(cells: Cells) -> Kernel:
    rows_count = cells.whole("B") * cells.whole("M")
    return kernel_with("gemm", m=rows_count, n=cells.whole("N"), k=cells.whole("K"))


def _bmm(cells: Cells) -> Kernel:
    batch = (cells.whole("B"),)
    sizes = {name.lower(): cells.whole(name) for name in ("M", "N", "K")}
    return kernel_with("matmul", batch_a=batch, batch_b=batch, **sizes)


def _conv(cells: Cells) -> Kernel:
    # the column's name is misspelt in the tables
    kernel, stride, pad = cells.whole("Kernel_Szie"), cells.whole("Stride"), cells.whole("Padding", least=0)
    size = cells.whole("Input_Size")
    return kernel_with(
        "conv",
        batch=cells.whole("B"),
        channels_in=cells.whole("Input_Channel"),
        channels_out=cells.whole("Output_Channel"),
        size=(size, size),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pads=(pad,) * 4,
        dilation=(1, 1),
    )


def _norm(cells: Cells) -> Kernel:
    return kernel_with("norm", op="layer", shape=(cells.whole("B"), cells.whole("H")), axis=1)


def _softmax(cells: Cells) -> Kernel:
    return kernel_with("softmax", shape=(cells.whole("B"), cells.whole("H")), axis=1)


def _elementwise(operation: str, inputs: int) -> Callable[[Cells], Kernel]:
    def read(cells: Cells) -> Kernel:
        shape = (cells.whole("B"), cells.whole("H"))
        # the other operand of a binary operator with one tensor is a number
        other = () if operation in _UNARY.values() else ((),)
        shapes = (shape, shape) if inputs == 2 else (shape, *other)
        exponent = 2.0 if operation == "pow" and inputs == 1 else None
        return kernel_with(
            "elementwise",
            op=operation,
            shapes=shapes,
            constant=(1,) if other and inputs == 1 else (),
            exponent=exponent,
        )

    return read


_MATRIX, _ROWS = ("B", "M", "N", "K"), ("B", "H")
_READERS: dict[str, tuple[tuple[str, ...], Callable[[Cells], Kernel]]] = {
    "linear": (_MATRIX, _linear),
    "bmm": (_MATRIX, _bmm),
    "conv": (("B", "Input_Channel", "Output_Channel", "Kernel_Szie", "Input_Size", "Stride", "Padding"), _conv),
    "ln": (_ROWS, _norm),
    "softmax": (_ROWS, _softmax),
    **{name: (_ROWS, _elementwise(operation, 1)) for name, operation in _UNARY.items()},
    **{name: (_ROWS, _elementwise(operation, 2)) for name, operation in _BINARY.items()},
    **{f"{name}u": (_ROWS, _elementwise(operation, 1)) for name, operation in _BINARY.items()},
}

IMPORTER = NeuSight()
