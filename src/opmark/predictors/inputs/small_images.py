"""Columns of images so small that a matrix product over them does not fill its vectors and tiles.

A convolution that multiplies column matrices runs along the positions of an image. With nine positions it is five times
slower than with sixteen, and from there on the number of positions hardly matters.
"""

import numpy as np

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs

_IMAGES = {"image": ("height", "width"), "output_image": ("output_height", "output_width")}
_ENOUGH = (4, 16, 64)


def image_positions(inputs: Inputs) -> dict[str, Floats]:
    """Count the positions of the image and of the output image of each kernel; empty for kinds without images."""
    return {
        name: inputs.raw[sides[0]] * inputs.raw[sides[1]]
        for name, sides in _IMAGES.items()
        if all(side in inputs.raw for side in sides)
    }


def with_small_images(inputs: Inputs) -> Inputs:
    """Append the logarithm of the positions of both images, at most 4, 16 and 64; the same `inputs` without images."""
    columns = {
        f"{name}_up_to_{enough}": np.log(np.clip(count, 1.0, enough))
        for name, count in image_positions(inputs).items()
        for enough in _ENOUGH
    }
    return inputs.with_columns(columns) if columns else inputs
