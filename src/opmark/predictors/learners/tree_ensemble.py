"""Predictions of a LightGBM text model, bit by bit those of LightGBM, without loading it for a few kernels.

Importing LightGBM brings pandas and pyarrow with it, which takes longer than most commands: a network has a hundred
distinct kernels, and numpy follows all trees for all of them at once.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Flags, Floats, Integers
from opmark.predictors.learners.tree_checks import TreeArrays, checked_trees

# For more rows times trees, loading LightGBM takes less time than it saves.
LARGE = 2**21
_MISSING_IS_ZERO, _MISSING_IS_NAN = 1, 2
# LightGBM's limit, a float32.
_ZERO = float(np.float32(1e-35))
_MOST_CATEGORY = 2.0**31 - 1
_WORD_BITS = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeEnsemble:
    """A text in the layout of `compact_trees`, and its trees as arrays."""

    text: str
    trees: TreeArrays

    @classmethod
    def of(cls, text: str) -> "TreeEnsemble":
        """Read a text in the layout of `compact_trees`. Raises `ValueError` as `checked_trees` does."""
        return cls(text=text, trees=checked_trees(text))

    def __len__(self) -> int:
        return len(self.trees.root)

    def predict(self, matrix: Floats) -> Floats:
        """Predict one value per row. Raises `ValueError` where the trees know other columns."""
        if self.trees.columns != matrix.shape[1]:
            raise ValueError(f"trees of {self.trees.columns} columns cannot predict from {matrix.shape[1]}")
        if len(matrix) * len(self) > LARGE:
            return self.predicted_by_lightgbm(matrix)
        leaves = self._leaves(np.asarray(matrix, dtype=np.float64))
        # one after another, as LightGBM adds them: another order would change the last bit
        total: Floats = np.cumsum(leaves, axis=1)[:, -1]
        return total / len(self) if self.trees.average else total

    def predicted_by_lightgbm(self, matrix: Floats) -> Floats:
        """The same from LightGBM itself, on one thread. Raises `ValueError` where it refuses the text."""
        values: Floats = np.asarray(self._booster.predict(matrix, num_threads=1), dtype=np.float64)
        return values

    @cached_property
    def _booster(self) -> Any:
        import lightgbm

        try:
            return lightgbm.Booster(model_str=self.text)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from error

    def _leaves(self, matrix: Floats) -> Floats:
        """The value of the leaf that each row reaches in each tree: rows × trees."""
        trees = self.trees
        splits = len(trees.feature)
        place = np.tile(trees.root, len(matrix))
        row = np.repeat(np.arange(len(matrix)), len(self))
        on_the_way = np.flatnonzero(place < splits)
        while len(on_the_way):
            split = place[on_the_way]
            value = matrix[row[on_the_way], trees.feature[split]]
            place[on_the_way] = np.where(self._goes_left(split, value), trees.left[split], trees.right[split])
            on_the_way = on_the_way[place[on_the_way] < splits]
        return trees.leaf_value[place - splits].reshape(len(matrix), len(self))

    def _goes_left(self, split: Integers, value: Floats) -> Flags:
        """Where a value goes at a split; LightGBM's `Tree::NumericalDecision` and `Tree::CategoricalDecision`."""
        trees = self.trees
        unknown = np.isnan(value)
        number = np.where(unknown, 0.0, value)
        missing = trees.missing[split]
        absent = (missing == _MISSING_IS_ZERO) & (np.abs(number) <= _ZERO) | (missing == _MISSING_IS_NAN) & unknown
        left: Flags = np.where(absent, trees.missing_left[split], number <= trees.threshold[split])
        by_category = np.flatnonzero(trees.by_category[split])
        if len(by_category):
            left[by_category] = self._in_bitset(split[by_category], value[by_category])
        return left

    def _in_bitset(self, split: Integers, value: Floats) -> Flags:
        trees = self.trees
        code = np.where(np.isnan(value), -1.0, np.clip(value, -1.0, _MOST_CATEGORY)).astype(np.int64)
        word = code // _WORD_BITS
        known = (code >= 0) & (word < trees.words[split])
        bits = trees.bits[np.where(known, trees.first_word[split] + word, 0)]
        found: Flags = known & ((bits >> (code % _WORD_BITS)) & 1 > 0)
        return found
