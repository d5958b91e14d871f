"""The code of ONNX Runtime that transposes a tensor, and what this code repeats.

ONNX Runtime asks whether a single axis moves (`IsTransposeMovingSingleAxis` in core/framework/transpose_helper.cc).
Then it transposes matrices of one, two or four bytes an element, copies words of eight, or blocks of any other size.
For every other order it computes the place of each element, or of each block that stays together (`DoUntypedTranspose`
in core/providers/cpu/tensor/transpose.cc).
"""

import math

from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.kinds._shared.shapes import Shape

MATRIX = "matrix"
WORDS = "words"
STRIDED = "strided"
BLOCKS = "blocks"
PLACES = "places"
PLACES_OF_BLOCKS = "places_of_blocks"
_CODES = (MATRIX, WORDS, STRIDED, BLOCKS, PLACES, PLACES_OF_BLOCKS)
# Bytes of an element of a matrix that has code of its own, and the side of the tiles that this code transposes at once.
_TILES = {1: 8, 2: 4, 4: 4}
_WORD = 8
# Lines at this distance share a place in the nearest cache.
_COLLIDING_BYTES = 4096
_COLUMNS = (
    *(f"by_{code}" for code in _CODES),
    *("matrices", "rows", "columns", "unit_bytes", "units", "outside_tiles", "read_collisions", "write_collisions"),
    "computed_axes",
)


def moved_axis(order: Shape) -> tuple[int, int] | None:
    """The place that a single axis leaves and the one it takes; None if several axes move, or none."""
    axes = list(range(len(order)))
    first = next((place for place in axes if order[place] != place), None)
    if first is None:
        return None
    for leaves, takes in ((order[first], first), (first, order.index(first))):
        rest = [axis for axis in axes if axis != leaves]
        if [*rest[:takes], leaves, *rest[takes:]] == list(order):
            return leaves, takes
    return None


def transpose_code_path(shape: Shape, order: Shape, dtype: str) -> dict[str, float]:
    """The code that transposes `shape` into `order`, matrices and their sides, and units that move as one.

    All are 0 for an order that moves nothing but axes of length 1.
    """
    found = no_code_path()
    kept = [axis for axis in order if shape[axis] != 1]
    if kept == sorted(kept):
        return found
    item_bytes = DTYPE_BYTES[dtype]
    move = moved_axis(order)
    return found | (_computed(shape, order, item_bytes) if move is None else _moved(shape, *move, item_bytes))


def no_code_path() -> dict[str, float]:
    """The columns of a kernel that transposes nothing."""
    return dict.fromkeys(_COLUMNS, 0.0)


def _moved(shape: Shape, leaves: int, takes: int, item_bytes: int) -> dict[str, float]:
    outwards = leaves > takes
    matrices = math.prod(shape[: min(leaves, takes)])
    unit_bytes = math.prod(shape[max(leaves, takes) + 1 :]) * item_bytes
    between = math.prod(shape[min(leaves, takes) : max(leaves, takes) + 1]) // shape[leaves]
    rows, columns = (between, shape[leaves]) if outwards else (shape[leaves], between)
    other = STRIDED if outwards else BLOCKS
    code = MATRIX if unit_bytes in _TILES else WORDS if unit_bytes == _WORD else other
    tile = _TILES.get(unit_bytes, 1)
    inside = (rows // tile * tile) * (columns // tile * tile) / (rows * columns)
    return {
        f"by_{code}": 1.0,
        "matrices": math.log(matrices),
        "rows": math.log(rows),
        "columns": math.log(columns),
        "unit_bytes": math.log(unit_bytes),
        "units": math.log(matrices * rows * columns),
        "outside_tiles": 1 - inside,
        "read_collisions": math.log2(math.gcd(columns * unit_bytes, _COLLIDING_BYTES)),
        "write_collisions": math.log2(math.gcd(rows * unit_bytes, _COLLIDING_BYTES)),
    }


def _computed(shape: Shape, order: Shape, item_bytes: int) -> dict[str, float]:
    axes = len(order)
    while axes and order[axes - 1] == axes - 1:
        axes -= 1
    block = math.prod(shape[axes:])
    apart = math.prod(shape[order[axes - 1] + 1 :]) * item_bytes
    return {
        f"by_{PLACES if block == 1 else PLACES_OF_BLOCKS}": 1.0,
        "unit_bytes": math.log(block * item_bytes),
        "units": math.log(math.prod(shape) // block),
        "columns": math.log(shape[order[axes - 1]]),
        "read_collisions": math.log2(math.gcd(apart, _COLLIDING_BYTES)),
        "computed_axes": float(axes),
    }
