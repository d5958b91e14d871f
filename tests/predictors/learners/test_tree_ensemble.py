"""Trees followed by numpy give LightGBM's numbers to the last bit."""

import subprocess
import sys
from typing import Any

import lightgbm
import numpy as np
import pytest

from opmark.predictors.learners.tree_ensemble import LARGE
from opmark.predictors.learners.trees import compact_trees, ensemble_from

ROWS = 400


def columns(seed: int) -> np.ndarray:
    """Sizes, a share with many zeros, and codes up to 90, which take three words of a bitset."""
    generator = np.random.default_rng(seed)
    share = np.where(generator.random(ROWS) < 0.4, 0.0, generator.normal(size=ROWS))
    return np.column_stack([generator.lognormal(size=ROWS), share, generator.integers(0, 90, ROWS)])


def grown(matrix: np.ndarray, **settings: Any) -> str:
    target = np.log(matrix[:, 0]) + np.nan_to_num(matrix[:, 1]) + (matrix[:, 2] % 7)
    fixed = {"objective": "regression", "verbose": -1, "seed": 1, "num_threads": 1, "min_data_per_group": 2}
    data = lightgbm.Dataset(matrix, target, categorical_feature=[2], params={"verbose": -1, **settings})
    booster = lightgbm.train({**fixed, **settings}, data, num_boost_round=60)
    return compact_trees(booster.model_to_string())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"zero_as_missing": True},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        {"num_leaves": 2},
    ],
)
def test_sizes_codes_and_missing_values_are_followed_as_lightgbm_does(settings: dict[str, Any]) -> None:
    seen, unseen = columns(1), columns(2)
    ensemble = ensemble_from(grown(seen, **settings))
    unseen[:40, 2] = [-1.0, 95.0, 2.0**40, 3.7] * 10
    unseen[40:80, 1] = np.nan
    unseen[80:90, 2] = np.nan
    for matrix in (seen, unseen):
        found = ensemble.predict(matrix)
        assert np.ptp(found) > 0
        assert np.array_equal(found, ensemble.predicted_by_lightgbm(matrix))


def test_values_that_were_missing_in_training_go_the_same_way() -> None:
    matrix = columns(3)
    matrix[::3, 1] = np.nan
    ensemble = ensemble_from(grown(matrix))
    assert np.array_equal(ensemble.predict(matrix), ensemble.predicted_by_lightgbm(matrix))


def test_many_rows_which_lightgbm_predicts_itself_get_the_same() -> None:
    ensemble = ensemble_from(grown(columns(1)))
    many = np.tile(columns(4), (LARGE // (ROWS * len(ensemble)) + 1, 1))
    assert len(many) * len(ensemble) > LARGE
    assert np.array_equal(ensemble.predict(many)[:ROWS], ensemble.predict(many[:ROWS]))


def test_other_columns_are_refused() -> None:
    ensemble = ensemble_from(grown(columns(1)))
    with pytest.raises(ValueError, match="trees of 3 columns cannot predict from 2"):
        ensemble.predict(columns(1)[:, :2])


def test_a_prediction_does_not_load_lightgbm() -> None:
    code = (
        "import sys; from pathlib import Path; from opmark.core.shipped import shipped_content;"
        "from opmark.predictors.model.bundle import load; from opmark.predictors.model.bundle_paths import path_of;"
        "from opmark.predictors.model.cost_model import CostModel; from opmark.models.resolve import graph_of;"
        "found = load(path_of(shipped_content(), 'nvidia-t4/torch-cuda-t1'));"
        "assert CostModel(found).network(graph_of('resnet-50', 'torch-cuda-t1')).total_ns > 0;"
        "assert not {'lightgbm', 'pandas', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
