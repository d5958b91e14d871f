"""Whole groups on one side: the property that makes a split honest."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.predictors import law

from opmark.predictors.inputs.shape_groups import are_enough, group_folds, shape_groups


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=60), st.integers(2, 6))
def test_no_group_lies_in_two_folds(groups: list[str], count: int) -> None:
    folds = group_folds(groups, count)
    assert len(folds) == len(groups)
    assert 0 <= folds.min() <= folds.max() < count
    if len(set(groups)) > 1:
        for group in set(groups):
            assert len({fold for fold, name in zip(folds.tolist(), groups, strict=True) if name == group}) == 1
        assert len(set(folds.tolist())) == min(count, len(set(groups)))


def test_folds_are_even_and_do_not_depend_on_the_order_of_rows() -> None:
    groups = [f"g{number % 20}" for number in range(200)]
    folds = group_folds(groups, 5)
    assert np.bincount(folds).tolist() == [40] * 5
    backwards = group_folds(groups[::-1], 5)
    assert backwards[::-1].tolist() == folds.tolist()


def test_groups_of_two_kinds_never_coincide() -> None:
    kernels = (*law.kernels("gemm", 20), *law.kernels("conv", 20))
    groups = shape_groups(kernels)
    assert not set(groups[:20]) & set(groups[20:])


def test_enough_kernels_are_of_five_groups() -> None:
    kernels = law.kernels("gemm", 12)
    assert are_enough(kernels, 12)
    assert not are_enough(kernels, 13)
    assert not are_enough(kernels[:1] * 12, 12), "siblings only"
