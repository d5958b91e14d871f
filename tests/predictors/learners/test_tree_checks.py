"""Trees that LightGBM would follow out of memory, or for ever, are refused before LightGBM sees them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmark.predictors.learners.tree_checks import checked_trees
from opmark.predictors.learners.trees import compact_trees, ensemble_from

HEAD = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=regression
feature_names=a b
feature_infos=none none"""
# A split by size above a split by category, then a tree of a single leaf.
TREES = """

Tree=0
num_leaves=3
num_cat=1
split_feature=0 1
threshold=0.5 0
decision_type=2 1
left_child=1 -1
right_child=-3 -2
leaf_value=1 2e-05 -3.5
cat_boundaries=0 1
cat_threshold=6

Tree=1
num_leaves=1
num_cat=0
split_feature=
threshold=
decision_type=
left_child=
right_child=
leaf_value=0.25

end of trees
"""
TEXT = HEAD + TREES


def test_honest_trees_pass_and_predict() -> None:
    checked_trees(TEXT)
    matrix = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    assert ensemble_from(TEXT).predict(matrix) == pytest.approx([1.25, 0.25002, -3.25])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("split_feature=0 1", "split_feature=0 2"),
        ("split_feature=0 1", "split_feature=0 -1"),
        ("split_feature=0 1", "split_feature=0 4294967297"),
        ("split_feature=0 1", "split_feature=0"),
        ("split_feature=0 1", "split_feature=0  1"),
        ("split_feature=0 1", "split_feature=0 x"),
        ("split_feature=0 1", "split_feature=0\t1"),
        ("left_child=1 -1", "left_child=0 -1"),
        ("left_child=1 -1", "left_child=1 1"),
        ("left_child=1 -1", "left_child=1 0"),
        ("left_child=1 -1", "left_child=1 -4"),
        ("left_child=1 -1", "left_child=1 -2"),
        ("left_child=1 -1", "left_child=2 -1"),
        ("left_child=1 -1", "left_child=1 -999999999"),
        ("decision_type=2 1", "decision_type=2 16"),
        ("decision_type=2 1", "decision_type=3 1"),
        ("decision_type=2 1", "decision_type=2 -1"),
        ("threshold=0.5 0", "threshold=0.5 1"),
        ("threshold=0.5 0", "threshold=0.5 -1"),
        ("threshold=0.5 0", "threshold=0.5 0.5"),
        ("threshold=0.5 0", "threshold=nan 0"),
        ("threshold=0.5 0", "threshold=0.5"),
        ("leaf_value=1 ", "leaf_value=nan "),
        ("leaf_value=1 ", "leaf_value=-inf "),
        ("leaf_value=1 ", "leaf_value=1e999 "),
        ("leaf_value=1 ", "leaf_value="),
        ("cat_boundaries=0 1", "cat_boundaries=0 9"),
        ("cat_boundaries=0 1", "cat_boundaries=1 1"),
        ("cat_boundaries=0 1", "cat_boundaries=0 -1"),
        ("cat_threshold=6", "cat_threshold=4294967296"),
        ("cat_threshold=6", "cat_threshold=6 6"),
        ("\ncat_threshold=6", ""),
        ("num_cat=1", "num_cat=2"),
        ("num_cat=1", "num_cat=0"),
        ("num_leaves=3", "num_leaves=0"),
        ("num_leaves=3", "num_leaves=4"),
        ("num_leaves=3", "num_leaves=999999999999"),
        ("Tree=1", "Tree=2"),
        ("num_class=1", "num_class=3"),
        ("max_feature_idx=1", "max_feature_idx=9"),
        ("objective=regression", "objective=poisson"),
        ("feature_names=a b", "feature_names=a b c"),
        ("label_index=0", "label_index=0\ntree_sizes=99999 99999"),
        ("\nnum_cat=1", "\nshrinkage"),
        ("end of trees", "end"),
        ("\nend of trees", "\nnum_leaves=2\nend of trees"),
    ],
)
def test_each_wrong_number_is_refused(old: str, new: str) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(ValueError, match=r".+"):
        ensemble_from(TEXT.replace(old, new, 1))


def test_a_circle_that_the_root_does_not_reach_is_refused() -> None:
    text = HEAD + re.sub(r"num_cat=1|\ncat_.*", lambda found: "num_cat=0" if "num" in found[0] else "", TREES)
    text = text.replace("num_leaves=3", "num_leaves=4").replace("=0 1\n", "=0 1 0\n").replace("0.5 0", "0.5 0 0")
    text = text.replace("decision_type=2 1", "decision_type=2 2 2").replace("leaf_value=1 ", "leaf_value=1 7 ")
    fine = text.replace("left_child=1 -1", "left_child=1 -1 -2").replace("right_child=-3 -2", "right_child=-4 2 -3")
    checked_trees(fine)
    circle = text.replace("left_child=1 -1", "left_child=-1 2 -2").replace("right_child=-3 -2", "right_child=-4 -3 1")
    with pytest.raises(ValueError, match="after its own child"):
        checked_trees(circle)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(TEXT) - 1), st.sampled_from("0123456789-. e=\n\x00x"))
def test_any_changed_character_is_refused_or_still_predicts(place: int, character: str) -> None:
    text = TEXT[:place] + character + TEXT[place + 1 :]
    try:
        ensemble = ensemble_from(text)
    except ValueError:
        return
    assert np.isfinite(ensemble.predict(np.array([[0.0, 1.0], [3.0, 0.0]]))).all()


def test_a_text_straight_from_lightgbm_is_brought_into_the_layout() -> None:
    import lightgbm

    generator = np.random.default_rng(1)
    matrix = np.column_stack([generator.random(300), generator.integers(0, 5, 300)])
    data = lightgbm.Dataset(matrix, matrix[:, 0] + (matrix[:, 1] == 2), categorical_feature=[1])
    booster = lightgbm.train({"objective": "regression", "verbose": -1}, data, num_boost_round=20)
    whole = booster.model_to_string()
    assert np.array_equal(ensemble_from(whole).predict(matrix), booster.predict(matrix, num_threads=1))
    checked_trees(compact_trees(whole))
