"""Columns of the tiles that a GPU computes a product in, and of the waves in which its multiprocessors take them.

After Habitat (Geoffrey X. Yu et al., ATC 2021: waves) and NeuSight (Seonho Lee et al., ASPLOS 2025: tiles).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Floats

_TILES = (32, 64, 128)
# Rows and columns of the tiles that libraries choose from.
_SHAPES = ((64, 64), (128, 64), (64, 128), (128, 128), (128, 256), (256, 128))


@dataclass(frozen=True, slots=True)
class _Products:
    """The rows and columns of the results of matrix products, and the number of products of each kernel."""

    rows: Floats
    columns: Floats
    count: Floats

    def tiles(self, rows: int, columns: int) -> Floats:
        return np.ceil(self.rows / rows) * np.ceil(self.columns / columns) * self.count

    @property
    def results(self) -> Floats:
        return np.maximum(self.rows * self.columns * self.count, 1.0)


def waves(raw: Mapping[str, Floats], multiprocessors: int) -> dict[str, Floats]:
    """Count the waves of a product's tiles over all multiprocessors, the empty part of the last, and the padding."""
    products = _products(raw)
    if products is None:
        return {}
    found = {}
    for tile in _TILES:
        tiles = products.tiles(tile, tile)
        taken = tiles / multiprocessors
        found[f"log_waves_{tile}"] = np.log(taken)
        found[f"last_wave_{tile}"] = np.ceil(taken) - taken
        found[f"tile_padding_{tile}"] = np.log(tiles * tile**2 / products.results)
    return found


def wave_losses(raw: Mapping[str, Floats], multiprocessors: int) -> dict[str, Floats]:
    """Compute what whole waves of whole tiles compute over what is wanted, in nats, per tile, and the least of all."""
    products = _products(raw)
    if products is None:
        return {}
    found = {}
    for rows, columns in _SHAPES:
        whole = np.ceil(products.tiles(rows, columns) / multiprocessors) * multiprocessors
        found[f"wave_loss_{rows}_{columns}"] = np.log(whole * rows * columns / products.results)
    found["least_wave_loss"] = np.min(list(found.values()), axis=0)
    return found


def _products(raw: Mapping[str, Floats]) -> _Products | None:
    rows = next((raw[name] for name in ("m", "gemm_m") if name in raw), None)
    columns = next((raw[name] for name in ("n", "group_channels_out") if name in raw), None)
    if rows is None or columns is None:
        return None
    count = next((raw[name] for name in ("products", "groups") if name in raw), np.ones_like(rows))
    return _Products(rows, columns, count)
