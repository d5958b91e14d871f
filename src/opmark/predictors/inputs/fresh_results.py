"""Columns of results in fresh memory, whose pages the operating system clears at the first touch.

glibc's malloc keeps what a kernel frees for the next one, but asks the system for each block from 32 MiB on
(`M_MMAP_THRESHOLD` in mallopt(3), at its greatest value). A kernel that only moves memory then takes several times as
long, which its size alone does not tell: it may write in place, or into several smaller tensors (decision 0047).
"""

import numpy as np

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS
from opmark.predictors.inputs.arrays import Flags
from opmark.predictors.inputs.features import Inputs

# What torch's targets set before decision 0048.
_FRESH_FROM_BYTES = 32 << 20


def with_fresh_results(inputs: Inputs) -> Inputs:
    """Append the logarithm of the bytes of fresh results, and their share of the bytes that the kernel moves.

    A smooth surface can follow these columns, too.
    """
    fresh = np.array([_fresh_bytes(inputs.kind, kernel) for kernel in inputs.kernels], dtype=np.float64)
    share = fresh / np.maximum(inputs.moved_bytes, 1.0)
    return inputs.with_columns({"fresh_result_bytes": np.log1p(fresh), "fresh_result_share": share})


def has_fresh_results(inputs: Inputs) -> Flags:
    """Mark the kernels with a result in fresh memory."""
    return np.array([_fresh_bytes(inputs.kind, kernel) > 0 for kernel in inputs.kernels], dtype=bool)


def _fresh_bytes(name: str, kernel: Kernel) -> int:
    """The bytes of those results of torch's call, each in memory of its own, that malloc does not keep."""
    kind = KINDS.load(name)
    call = kind.to_aten(kind.parse(kernel))
    if call is None or _is_in_place(call):
        return 0
    return sum(spec.size_bytes for spec in call.outputs if spec.size_bytes >= _FRESH_FROM_BYTES)


def _is_in_place(call: AtenCall) -> bool:
    return call.op.partition(".")[0].endswith("_")
