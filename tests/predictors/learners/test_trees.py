"""LightGBM's text without what no prediction needs."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.predictors.inputs.features import features
from opmark.predictors.learners.trees import compact_trees, ensemble_from, fit_trees


def trained(kind: str) -> tuple[str, np.ndarray, np.ndarray]:
    kernels = law.kernels(kind, 200)
    inputs = features(kernels, None, law.HARDWARE)
    target = np.log([law.hot_ns(kernel) for kernel in kernels])
    text, _ = fit_trees(inputs.matrix, target, inputs.categorical, np.arange(len(kernels)) % 3)
    others = features(law.kernels(kind, 200, seed=4), None, law.HARDWARE)
    return text, inputs.matrix, others.matrix


@pytest.mark.parametrize("kind", ["elementwise", "conv"])
def test_predictions_stay_and_two_thirds_of_the_text_go(kind: str) -> None:
    text, seen, unseen = trained(kind)
    compact = compact_trees(text)
    assert len(compact) < 0.55 * len(text)
    before, after = ensemble_from(text), ensemble_from(compact)
    assert len(after) == len(before) > 20
    for matrix in (seen, unseen):
        assert np.abs(before.predict(matrix) - after.predict(matrix)).max() < 1e-6
    assert "num_cat=1" in text or kind != "elementwise"


def test_it_is_the_same_again() -> None:
    compact = compact_trees(trained("conv")[0])
    assert compact_trees(compact) == compact
    assert not {"split_gain", "leaf_count", "tree_sizes", "parameters"} & {
        line.partition("=")[0] for line in compact.split("\n")
    }


@pytest.mark.parametrize("text", ["", "nonsense", "tree\nversion=v4\n"])
def test_foreign_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a LightGBM text model"):
        compact_trees(text)


def test_linear_trees_are_refused() -> None:
    text = trained("conv")[0].replace("is_linear=0", "is_linear=1", 1)
    with pytest.raises(ValueError, match="linear"):
        compact_trees(text)
