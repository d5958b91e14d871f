"""Remainders of the sizes that loops run over."""

import numpy as np
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.remainders import with_remainders


def product(m: int, k: int, n: int) -> Kernel:
    return Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32"})


def test_what_whole_vectors_leave_of_a_size() -> None:
    told = with_remainders(features((product(37, 64, 8),), None, law.HARDWARE))
    row = dict(zip(told.names, told.matrix[0], strict=True))
    assert [round(float(np.expm1(row[f"m_over_{count}"]))) for count in (4, 8, 16, 32, 64)] == [1, 5, 5, 5, 37]
    assert not any(row[f"k_over_{count}"] for count in (4, 8, 16, 32, 64))


def test_an_image_counts_as_a_whole() -> None:
    window = {"batch": 1, "channels_in": 8, "channels_out": 8, "size": (7, 5), "kernel": (1, 1), "stride": (2, 2)}
    window |= {"pads": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1, "bias": False, "dtype": "float32"}
    told = with_remainders(features((Kernel.of("conv", window),), None, law.HARDWARE))
    row = dict(zip(told.names, told.matrix[0], strict=True))
    assert round(float(np.expm1(row["image_over_32"]))) == 3
    assert round(float(np.expm1(row["output_image_over_8"]))) == 4


def test_kinds_without_such_sizes_keep_their_columns() -> None:
    moved = Kernel.of("bytes-moved", {"read_bytes": 4096, "written_bytes": 64})
    usual = features((moved,), None, law.HARDWARE)
    assert with_remainders(usual) is usual
