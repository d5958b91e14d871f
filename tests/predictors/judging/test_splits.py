"""Splits: who judges, and that nothing leaks."""

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.errors import UnknownNameError
from opmark.kinds import KINDS
from opmark.predictors.inputs.features import features
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.judging.splits import SPLITS, Context, split_rows


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS if kind.space and "onnx" in kind.languages])
def test_no_shape_group_of_any_kind_stands_on_both_sides(kind: str) -> None:
    inputs = features(law.kernels(kind, 60))
    groups = shape_groups(inputs.kernels)
    judging = split_rows("shape-group", inputs)
    learning = {group for group, judges in zip(groups, judging, strict=True) if not judges}
    assert not {group for group, judges in zip(groups, judging, strict=True) if judges} & learning
    # nor do folds, by which estimators choose and intervals are calibrated, divide a group
    folds = group_folds(groups, 5)
    if len(set(groups)) > 1:
        assert all(len(set(folds[np.array(groups) == group])) == 1 for group in set(groups))


@pytest.mark.parametrize("kind", law.KIND_NAMES)
def test_no_shape_group_stands_on_both_sides(kind: str) -> None:
    inputs = features(law.kernels(kind, 120))
    judging = split_rows("shape-group", inputs)
    groups = np.array(shape_groups(inputs.kernels))
    assert not set(groups[judging]) & set(groups[~judging])
    assert 0.1 < judging.mean() < 0.4


def test_random_is_a_fifth_and_the_same_kernels_in_any_order() -> None:
    inputs = features(law.kernels("conv", 200))
    judging = split_rows("random", inputs)
    assert 0.1 < judging.mean() < 0.3
    assert split_rows("random", inputs.take(slice(None, None, -1)))[::-1].tolist() == judging.tolist()


def test_the_frontier_holds_nothing_smaller_than_the_rest() -> None:
    inputs = features(law.kernels("softmax", 100))
    judging = split_rows("frontier", inputs)
    size = np.log1p(inputs.flops) + np.log1p(inputs.moved_bytes)
    assert size[judging].min() > size[~judging].max()
    assert 0.08 <= judging.mean() <= 0.2


def test_real_models_judge_by_their_own_kernels() -> None:
    inputs = features(law.kernels("gemm", 30))
    keys = frozenset(kernel.key for kernel in inputs.kernels[3:7])
    judging = split_rows("real-model", inputs, Context(network_kernels={"net": keys}))
    assert np.flatnonzero(judging).tolist() == [3, 4, 5, 6]
    assert not split_rows("real-model", inputs).any()


def test_one_group_or_one_size_gives_nothing_to_judge() -> None:
    inputs = features(law.kernels("gemm", 1) * 9)
    assert not split_rows("shape-group", inputs).any()
    assert not split_rows("frontier", inputs).any()


def test_an_unknown_split_is_named() -> None:
    assert set(SPLITS) == {"random", "shape-group", "frontier", "real-model"}
    with pytest.raises(UnknownNameError, match="no split is called 'frontiers'") as raised:
        split_rows("frontiers", features(law.kernels("gemm", 3)))
    assert "frontier" in (raised.value.hint or "")
