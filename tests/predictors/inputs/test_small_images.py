"""Positions of images that are too small for a matrix product."""

import numpy as np
from tests.predictors import law

from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.small_images import with_small_images


def test_positions_count_up_to_a_limit() -> None:
    window = {"batch": 1, "channels_in": 8, "channels_out": 8, "size": (7, 5), "kernel": (1, 1), "stride": (2, 2)}
    window |= {"pads": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1, "bias": False, "dtype": "float32"}
    told = with_small_images(features((Kernel.of("conv", window),), None, law.HARDWARE))
    row = dict(zip(told.names, told.matrix[0], strict=True))
    assert [round(float(np.exp(row[f"image_up_to_{enough}"]))) for enough in (4, 16, 64)] == [4, 16, 35]
    assert [round(float(np.exp(row[f"output_image_up_to_{enough}"]))) for enough in (4, 16, 64)] == [4, 12, 12]


def test_kinds_without_images_keep_their_columns() -> None:
    usual = features((Kernel.of("gemm", {"m": 4, "k": 8, "n": 16, "dtype": "float32"}),), None, law.HARDWARE)
    assert with_small_images(usual) is usual
