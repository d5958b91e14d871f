"""Tiles and waves of a GPU's products."""

import numpy as np
import pytest

from opmark.kinds import KINDS
from opmark.predictors.inputs.features import Hardware, Inputs, features
from opmark.predictors.inputs.steps import with_wave_losses

GPU = Hardware(vector_bytes=512, cache_bytes=(256 << 10, 50 << 20), multiprocessors=100)


def products(*sizes: tuple[int, int], hardware: Hardware = GPU) -> Inputs:
    kind = KINDS.load("gemm")
    return features([kind.kernel(kind.parameters(m=m, n=n, k=64)) for m, n in sizes], hardware=hardware)


def column(inputs: Inputs, name: str) -> list[float]:
    return list(inputs.matrix[:, inputs.names.index(name)])


def test_whole_waves_of_whole_tiles_lose_nothing():
    # A hundred tiles of 128 by 128 for a hundred multiprocessors, and one more.
    found = with_wave_losses(products((1280, 1280), (1280, 1281)))
    first, second = column(found, "wave_loss_128_128")
    assert first == pytest.approx(0.0)
    # Eleven tiles more are a second wave.
    assert second == pytest.approx(np.log(2 * 100 * 128**2 / (1280 * 1281)))
    assert column(found, "least_wave_loss") == pytest.approx(
        [min(column(found, name)[row] for name in found.names if name.startswith("wave_loss")) for row in (0, 1)]
    )


def test_a_processor_and_other_work_have_no_waves():
    processor = products((128, 128), hardware=Hardware())
    assert with_wave_losses(processor) is processor
    kind = KINDS.load("softmax")
    other = features([kind.kernel(kind.parameters(shape=(4, 8), axis=1))], hardware=GPU)
    assert with_wave_losses(other) is other


def test_rows_keep_their_multiprocessors():
    assert products((8, 8), (16, 16)).take([1]).multiprocessors == 100
