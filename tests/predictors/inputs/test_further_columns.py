"""Columns of the powers of two in sizes, of what an implementation repeats, and of results in fresh memory."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS
from opmark.predictors.inputs.alignment import aligned
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.fresh_results import has_fresh_results, with_fresh_results
from opmark.predictors.inputs.remainders import with_remainders
from opmark.predictors.inputs.steps import with_code_path, with_steps


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


@pytest.mark.parametrize("further", [aligned, with_steps, with_code_path, with_remainders, with_fresh_results])
@pytest.mark.parametrize("kind", KINDS.names())
def test_further_columns_are_numbers_that_a_surface_can_follow(kind: str, further: Callable[[Inputs], Inputs]) -> None:
    if not KINDS.load(kind).space:
        pytest.skip("nothing to draw from")
    try:
        kernels = law.kernels(kind, 5)
    except AssertionError:
        pytest.skip("not of ONNX")
    usual = features(kernels, None, law.HARDWARE)
    more = further(usual)
    count = len(usual.names)
    assert more.names[:count] == usual.names
    assert np.array_equal(more.matrix[:, :count], usual.matrix)
    assert np.isfinite(more.matrix).all()
    assert len(set(more.names)) == more.matrix.shape[1]
    assert (more.sizes, more.categorical) == (usual.sizes, usual.categorical)
    assert more.smooth == (*usual.smooth, *range(count, len(more.names)))
    assert np.array_equal(more.take([3, 1]).matrix, further(usual.take([3, 1])).matrix)


def attention(batch: int, heads: int, length: int) -> Kernel:
    sizes = {"batch": batch, "heads": heads, "kv_heads": heads, "query_length": length, "key_length": length}
    return Kernel.of("attention", sizes | {"head_size": 64, "value_size": 64, "variant": "flash", "dtype": "float32"})


def test_attention_multiplies_blocks_of_queries_with_blocks_of_keys() -> None:
    """torch takes 32 queries at once, 64 of 192 or more, 256 of 768 or more; and 512 keys."""
    inputs = with_steps(
        features([attention(1, 1, 32), attention(1, 1, 33), attention(2, 3, 200), attention(1, 1, 1024)])
    )
    assert np.allclose(np.exp(column(inputs, "log_products")), [1, 2, 2 * 3 * 4, 4 * 2])
    assert column(inputs, "last_block") == [1, round(1 / 32, 9), round(8 / 64, 9), 1]
    assert column(inputs, "keys_lane_padding") == [0, round(48 / 33 - 1, 9), round(208 / 200 - 1, 9), 0]


def sum_of(mebibytes: int, *, inplace: bool = False) -> Kernel:
    shape = (mebibytes, 2**18)
    sizes = {"op": "add", "shapes": (shape, shape), "constant": (), "exponent": None}
    return Kernel.of("elementwise", sizes | {"inplace": inplace, "dtype": "float32"})


def test_malloc_keeps_results_below_32_mib_and_what_is_written_in_place() -> None:
    inputs = features([sum_of(31), sum_of(32), sum_of(64), sum_of(64, inplace=True)])
    assert has_fresh_results(inputs).tolist() == [False, True, True, False]
    more = with_fresh_results(inputs)
    assert np.allclose(np.expm1(column(more, "fresh_result_bytes")), [0, 2**25, 2**26, 0])
    assert np.allclose(column(more, "fresh_result_share"), [0, 1 / 3, 1 / 3, 0])


def test_each_result_has_memory_of_its_own() -> None:
    """The maxima take 24 MiB, which is kept; their places take 48."""
    kind = KINDS.load("pool")
    sizes = {"kernel": (2, 2), "stride": (2, 2), "pads": (0, 0, 0, 0), "dilation": (1, 1)}
    pool = kind.parameters(op="max", batch=6, channels=64, size=(256, 256), indices=True, **sizes)
    more = with_fresh_results(features([kind.kernel(pool)]))
    assert np.allclose(np.expm1(column(more, "fresh_result_bytes")), [48 * 2**20])
