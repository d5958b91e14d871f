"""LightGBM with settings that suit the number of rows; always one thread, always the same result.

G. Ke et al.: LightGBM: A Highly Efficient Gradient Boosting Decision Tree. NeurIPS 2017.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Floats, Integers

_PATIENCE = 40
_MOST_ROUNDS = 1500


def fit_trees(matrix: Floats, target: Floats, categorical: Sequence[int], folds: Integers) -> tuple[str, Floats]:
    """A boosted ensemble as text, and its predictions of each row made without the row's fold.

    The number of rounds is the mean of where each fold's held-out error stopped falling.
    """
    import lightgbm

    parameters = settings(len(target))
    held_out = np.empty(len(target))
    rounds = []
    for fold in np.unique(folds):
        outside, inside = folds != fold, folds == fold
        if not outside.any():
            held_out[inside] = float(np.median(target))
            continue
        training = _dataset(matrix[outside], target[outside], categorical)
        validation = lightgbm.Dataset(matrix[inside], target[inside], reference=training)
        booster = lightgbm.train(
            parameters,
            training,
            num_boost_round=_MOST_ROUNDS,
            valid_sets=[validation],
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
            # else it is written as text and read again, which takes a fifth of the time
            keep_training_booster=True,
        )
        rounds.append(max(1, booster.best_iteration))
        held_out[inside] = booster.predict(matrix[inside], num_iteration=booster.best_iteration, num_threads=1)
    chosen = round(float(np.mean(rounds))) if rounds else 1
    whole = lightgbm.train(
        parameters, _dataset(matrix, target, categorical), num_boost_round=chosen, keep_training_booster=True
    )
    text: str = whole.model_to_string()
    return text, held_out


def settings(rows: int) -> dict[str, Any]:
    """LightGBM parameters: few rows get small trees that learn slowly."""
    return {
        "objective": "regression",
        "metric": "l2",
        "learning_rate": 0.05 if rows < 2000 else 0.08,
        "num_leaves": int(np.clip(rows // 8, 4, 31)),
        "min_data_in_leaf": int(np.clip(rows // 25, 2, 12)),
        "feature_fraction": 0.8,
        "lambda_l2": 1.0,
        "min_data_in_bin": 1 if rows < 2000 else 3,
        "cat_smooth": 1.0,
        "min_data_per_group": 3,
    } | FIXED


# one thread is faster than two on a busy machine, and the rest makes the text the same in every run
FIXED = {
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 1,
    "verbose": -1,
    "feature_pre_filter": False,
}


def predict_trees(booster: Any, matrix: Floats) -> Floats:
    """Predictions of a booster on one thread."""
    values: Floats = np.asarray(booster.predict(matrix, num_threads=1), dtype=np.float64)
    return values


def booster_from(text: str) -> Any:
    """The booster of `model_to_string`'s text. Raises `ValueError` on foreign text."""
    import lightgbm

    if not text.startswith("tree"):
        raise ValueError("not a LightGBM text model")
    try:
        return lightgbm.Booster(model_str=text)
    except lightgbm.basic.LightGBMError as error:
        raise ValueError(str(error)) from error


def _dataset(matrix: Floats, target: Floats, categorical: Sequence[int]) -> Any:
    import lightgbm

    return lightgbm.Dataset(
        matrix, target, categorical_feature=list(categorical), params={"verbose": -1, "feature_pre_filter": False}
    )
