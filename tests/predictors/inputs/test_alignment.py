"""Columns of the powers of two in sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS
from opmark.predictors.inputs.alignment import aligned
from opmark.predictors.inputs.features import Inputs, features


def column(inputs: Inputs, name: str) -> list[float]:
    return np.round(inputs.matrix[:, inputs.names.index(name)], 9).tolist()


def product(m: int, k: int, n: int) -> Kernel:
    return Kernel.of("gemm", {"m": m, "k": k, "n": n, "dtype": "float32"})


def test_powers_and_padding_follow_the_sizes() -> None:
    inputs = aligned(features([product(1, 12, 64), product(3, 17, 65), product(128, 768, 96)]))
    assert column(inputs, "m_power") == [0, 0, 6]
    assert column(inputs, "k_power") == [2, 0, 6]
    assert column(inputs, "n_power") == [6, 0, 5]
    assert column(inputs, "n_block_padding") == [0, round(80 / 65 - 1, 9), 0]


@given(st.integers(1, 2**40))
def test_a_power_divides_its_size_and_its_double_does_not(size: int) -> None:
    (power,) = column(aligned(features([product(size, 8, 8)])), "m_power")
    assert size % 2**power == 0
    assert power == 6 or size % 2 ** (power + 1)


@pytest.mark.parametrize("kind", KINDS.names())
def test_it_only_appends_numbers_that_a_surface_can_follow(kind: str) -> None:
    if not KINDS.load(kind).space:
        pytest.skip("nothing to draw from")
    try:
        kernels = law.kernels(kind, 5)
    except AssertionError:
        pytest.skip("not of ONNX")
    usual = features(kernels, None, law.HARDWARE)
    more = aligned(usual)
    count = len(usual.names)
    assert more.names[:count] == usual.names
    assert np.array_equal(more.matrix[:, :count], usual.matrix)
    assert np.isfinite(more.matrix).all()
    assert len(set(more.names)) == more.matrix.shape[1]
    assert (more.sizes, more.categorical) == (usual.sizes, usual.categorical)
    assert more.smooth == (*usual.smooth, *range(count, len(more.names)))
    assert np.array_equal(more.take([3, 1]).matrix, aligned(usual.take([3, 1])).matrix)
