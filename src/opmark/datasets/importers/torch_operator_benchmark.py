"""PyTorch's operator benchmarks, the CSV of `benchmarks/operator_benchmark`: microseconds on a CPU.

pytorch/pytorch. A case is written `mm_M64_N64_K128_cpu_dtypetorch.float32`; the benchmark of the operator defines each
size. Backward cases, quantised ones and operators whose name lacks the shape are left out and counted.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.datasets.importing.cells import rows
from opmark.datasets.importing.importer import ImportedRow, Runtime, TableImporter, kernel_with

_CASE, _TIME = "Case Name", "Execution Time"
_UNARY = {
    **{name: name for name in ("abs", "neg", "sign", "relu", "ceil", "floor", "round", "reciprocal", "sqrt", "rsqrt")},
    **{name: name for name in ("square", "sin", "cos", "tan", "atan", "tanh", "sigmoid", "exp", "log", "expm1")},
    **{name: name for name in ("log1p", "erf", "gelu")},
    "clamp": "clip",
}
_BINARY = ("add", "sub", "mul", "div")


class TorchOperatorBenchmark(TableImporter):
    """Forward cases of dense operators."""

    title = "torch's operator benchmark (CSV)"
    source = "github.com/pytorch/pytorch, benchmarks/operator_benchmark"
    attribution = "the PyTorch contributors"
    licence = "BSD-3-Clause"
    label = "the mean of one timed loop, the call's overhead included"
    samples = 1

    def entries(self, path: Path) -> Iterator[ImportedRow]:
        """Read every row."""
        runtime = Runtime(backend="torch-eager")
        for cells in rows(path, (_CASE, _TIME)):
            case, latency_ns = cells.text(_CASE), cells.latency_ns(_TIME, 1e3)
            kernel = None if case.endswith("_BACKWARD") else _kernel(case)
            if kernel is None:
                what = "backward case" if case.endswith("_BACKWARD") else f"case of {case.partition('_')[0]}"
                yield ImportedRow(where=cells.where, runtime=runtime, left_out=what)
            else:
                yield ImportedRow(where=cells.where, runtime=runtime, latency_ns=latency_ns, kernel=kernel)


def _kernel(case: str) -> Kernel | None:
    if _TOO_LONG.search(case):
        return None
    for pattern, build in _FORMS:
        found = pattern.fullmatch(case)
        if found:
            return build(found)
    return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _unary(found: "re.Match[str]") -> Kernel | None:
    if found["op"] not in _UNARY:
        return None
    shape = (int(found["m"]), int(found["n"]))
    return kernel_with("elementwise", op=_UNARY[found["op"]], shapes=(shape,), inplace=bool(found["inplace"]))


def _binary(found: "re.Match[str]") -> Kernel | None:
    shape = (int(found["m"]), int(found["n"]), int(found["k"]))
    one, two = found["one"] or "float32", found["two"] or "float32"
    if one != two or one not in DTYPE_BYTES:
        return None
    return kernel_with("elementwise", op=found["op"], shapes=(shape, shape), inplace=bool(found["inplace"]), dtype=one)


def _broadcast(found: "re.Match[str]") -> Kernel | None:
    shapes = (_numbers(found["one"]), _numbers(found["two"]))
    return kernel_with("elementwise", op=found["op"], shapes=shapes, dtype=found["dtype"])


def _product(found: "re.Match[str]") -> Kernel:
    # M×N times N×K; `trans` is True for an operand stored in this order, False for a transposed one
    sizes = {"m": int(found["m"]), "k": int(found["n"]), "n": int(found["k"])}
    groups = found.groupdict()
    turned = {f"trans_{side}": groups.get(side) == "False" for side in "ab"}
    return kernel_with("gemm", **sizes, **turned, bias="none", weight=False, dtype=groups.get("dtype") or "float32")


def _linear(found: "re.Match[str]") -> Kernel:
    return kernel_with("gemm", m=int(found["m"]), k=int(found["k"]), n=int(found["n"]))


def _batched(found: "re.Match[str]") -> Kernel:
    batch = (int(found["b"]),)
    sizes = {name: int(found[name]) for name in ("m", "n", "k")}
    return kernel_with("matmul", batch_a=batch, batch_b=batch, **sizes, dtype=found["dtype"] or "float32")


def _softmax(found: "re.Match[str]") -> Kernel:
    # by default, PyTorch takes the second axis of a tensor with four
    return kernel_with(
        "softmax", shape=_numbers(",".join(found.group(2, 3, 4, 5))), axis=1, log=found["op"] == "LogSoftmax"
    )


def _layer_norm(found: "re.Match[str]") -> Kernel:
    return kernel_with("norm", op="layer", shape=_numbers(found["dims"]), axis=1)


def _group_norm(found: "re.Match[str]") -> Kernel:
    return kernel_with("norm", op="group", shape=_numbers(found["dims"]), groups=int(found["groups"]))


def _conv2d(found: "re.Match[str]") -> Kernel:
    one = {name: int(value) for name, value in found.groupdict().items()}
    return kernel_with(
        "conv",
        batch=one["n"],
        channels_in=one["cin"],
        channels_out=one["cout"],
        size=(one["h"], one["w"]),
        kernel=(one["kernel"],) * 2,
        stride=(one["stride"],) * 2,
        pads=(one["pad"],) * 4,
        dilation=(1, 1),
        groups=one["groups"],
    )


# No size of a tensor has so many digits.
_TOO_LONG = re.compile(r"\d{10}")
_TYPE = r"torch\.(?P<dtype>float32|float64|float16|bfloat16)"
_BOTH = r"(?:_dtype_onetorch\.(?P<one>\w+?)_dtype_twotorch\.(?P<two>\w+))?"
_OPS = "|".join(_BINARY)
_FORMS: tuple[tuple["re.Pattern[str]", Callable[["re.Match[str]"], Kernel | None]], ...] = tuple(
    (re.compile(pattern, re.ASCII), build)
    for pattern, build in (
        (r"(?P<op>[a-z0-9]+)(?P<inplace>_?)_M(?P<m>\d+)_N(?P<n>\d+)_cpu", _unary),
        (rf"(?P<op>{_OPS})(?P<inplace>_?)_M(?P<m>\d+)_N(?P<n>\d+)_K(?P<k>\d+)_cpu{_BOTH}", _binary),
        (
            rf"(?P<op>{_OPS})_in_one\[(?P<one>\d+(?:,\d+)*)\]_in_two\[(?P<two>\d+(?:,\d+)*)\]_cpu_dtype{_TYPE}",
            _broadcast,
        ),
        (rf"mm_M(?P<m>\d+)_N(?P<n>\d+)_K(?P<k>\d+)_cpu_dtype{_TYPE}", _product),
        (
            r"matmul_M(?P<m>\d+)_N(?P<n>\d+)_K(?P<k>\d+)_trans_a(?P<a>True|False)_trans_b(?P<b>True|False)_cpu",
            _product,
        ),
        (r"linear_N(?P<m>\d+)_IN(?P<k>\d+)_OUT(?P<n>\d+)_cpu", _linear),
        (rf"bmm.*_B(?P<b>\d+)_M(?P<m>\d+)_N(?P<n>\d+)_K(?P<k>\d+)_cpu_dtype{_TYPE}_op(?:bmm|matmul)", _batched),
        (r"(?P<op>Softmax|Softmax2d|LogSoftmax)_N(\d+)_C(\d+)_H(\d+)_W(\d+)_cpu", _softmax),
        (r"LayerNormBenchmark_dims\((?P<dims>\d+(?:,\d+)*)\)", _layer_norm),
        (r"GroupNormBenchmark_dims\((?P<dims>\d+(?:,\d+)*)\)_num_groups(?P<groups>\d+)", _group_norm),
        (
            r"Conv2d_IC(?P<cin>\d+)_OC(?P<cout>\d+)_kernel(?P<kernel>\d+)_stride(?P<stride>\d+)_N(?P<n>\d+)"
            r"_H(?P<h>\d+)_W(?P<w>\d+)_G(?P<groups>\d+)_pad(?P<pad>\d+)_cpu",
            _conv2d,
        ),
    )
)

IMPORTER = TorchOperatorBenchmark()
