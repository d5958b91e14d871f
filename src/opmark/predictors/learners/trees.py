"""LightGBM ensembles: fitted with settings that suit the number of rows, stored as short text, always on one thread.

G. Ke et al.: LightGBM: A Highly Efficient Gradient Boosting Decision Tree. NeurIPS 2017.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, Integers, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.learners.per_label import LabelModel, PerLabel
from opmark.predictors.learners.tree_checks import CATEGORY_LINES, COMPACT_END, END, LINES
from opmark.predictors.learners.tree_ensemble import TreeEnsemble

_PATIENCE = 40
_MOST_ROUNDS = 1500
_BRIEF = {"learning_rate": 0.2}
_BRIEF_PATIENCE = 10
_FOLDS = 5
# LightGBM refuses a model without ranges of features, but only drawing and explaining read them.
_UNKNOWN_RANGE = "none"
# Up to 1,500 leaves are added up; rounding each to eight decimals changes the sum by mostly less than 1e-7.
_LEAF_DECIMALS = 8
# A threshold separates two logarithms of whole numbers; those of 10^10 and its successor share ten digits.
_THRESHOLD_DIGITS = 12


def fit_trees(
    matrix: Floats, target: Floats, categorical: Sequence[int], folds: Integers, weight: Floats | None = None
) -> tuple[str, Floats]:
    """Fit a boosted ensemble; return its text, and predictions of each row made without the row's fold."""
    held_out, rounds = held_out_trees(matrix, target, categorical, folds, weight)
    return grown_trees(matrix, target, categorical, rounds, weight), held_out


def held_out_trees(
    matrix: Floats,
    target: Floats,
    categorical: Sequence[int],
    folds: Integers,
    weight: Floats | None = None,
    *,
    brief: bool = False,
) -> tuple[Floats, int]:
    """Predict each row without its fold; return the predictions and the number of rounds for an ensemble of all rows.

    With `brief`, trees learn fast and a little worse. The number of rounds is the mean, over folds, of the round after
    which the held-out error stopped falling.
    """
    import lightgbm

    parameters = settings(len(target)) | (_BRIEF if brief else {})
    held_out = np.empty(len(target))
    rounds = []
    for fold in np.unique(folds):
        outside, inside = folds != fold, folds == fold
        if not outside.any():
            held_out[inside] = float(np.median(target))
            continue
        training = _dataset(matrix[outside], target[outside], categorical, None if weight is None else weight[outside])
        validation = lightgbm.Dataset(
            matrix[inside], target[inside], reference=training, weight=None if weight is None else weight[inside]
        )
        booster = lightgbm.train(
            parameters,
            training,
            num_boost_round=_MOST_ROUNDS,
            valid_sets=[validation],
            callbacks=[lightgbm.early_stopping(_BRIEF_PATIENCE if brief else _PATIENCE, verbose=False)],
            # otherwise LightGBM writes it as text and reads it again, which takes a fifth of the time
            keep_training_booster=True,
        )
        rounds.append(max(1, booster.best_iteration))
        held_out[inside] = booster.predict(matrix[inside], num_iteration=booster.best_iteration, num_threads=1)
    return held_out, round(float(np.mean(rounds))) if rounds else 1


def grown_trees(
    matrix: Floats, target: Floats, categorical: Sequence[int], rounds: int, weight: Floats | None = None
) -> str:
    """Fit an ensemble of all rows in that many rounds; return its text."""
    import lightgbm

    whole = lightgbm.train(
        settings(len(target)),
        _dataset(matrix, target, categorical, weight),
        num_boost_round=rounds,
        keep_training_booster=True,
    )
    text: str = whole.model_to_string()
    return text


def settings(rows: int) -> dict[str, Any]:
    """Choose LightGBM parameters: few rows get small trees that learn slowly."""
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


# One thread is faster than two on a busy machine; the rest makes the text the same in every run.
FIXED = {
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 1,
    "verbose": -1,
    "feature_pre_filter": False,
}


def ensemble_from(text: str) -> TreeEnsemble:
    """Read the text of `model_to_string`. Raises `ValueError` on foreign text and on trees that cannot be followed."""
    if not text.startswith("tree\n"):
        raise ValueError("not a LightGBM text model")
    return TreeEnsemble.of(text if text.endswith(COMPACT_END) else _needed(text))


def _dataset(matrix: Floats, target: Floats, categorical: Sequence[int], weight: Floats | None) -> Any:
    import lightgbm

    return lightgbm.Dataset(
        matrix,
        target,
        weight=weight,
        categorical_feature=list(categorical),
        params={"verbose": -1, "feature_pre_filter": False},
    )


def compact_trees(text: str) -> str:
    """Shorten a LightGBM text model to a third: without statistics of training, parameters and most digits.

    Leaf values are rounded to eight decimals, so predictions must come from the short text, too. Raises `ValueError`
    where `text` is no LightGBM text model, or one of linear trees.
    """
    return _needed(text, _rounded)


def _needed(text: str, number: Callable[[str, str], str] = lambda _, value: value) -> str:
    """The lines that predictions need, each value as `number` writes it. Raises `ValueError` on foreign text."""
    head, first, rest = text.partition("\nTree=0\n")
    trees, end, _ = rest.partition(f"\n{END}")
    if not (first and end):
        raise ValueError("not a LightGBM text model with a tree")
    lines = [line for line in map(_header, head.split("\n")) if line is not None]
    lines += ["", "Tree=0"]
    for line in trees.split("\n"):
        name, equals, value = line.partition("=")
        if name == "is_linear" and value != "0":
            raise ValueError("linear trees cannot be compacted")
        if name == "Tree":
            lines += ["", line]
        elif equals and (name in LINES or name in CATEGORY_LINES):
            lines.append(f"{name}={number(name, value)}")
    return "\n".join([*lines, "", END, ""])


def _header(line: str) -> str | None:
    name, _, value = line.partition("=")
    if name == "feature_infos":
        return f"{name}={' '.join([_UNKNOWN_RANGE] * len(value.split()))}"
    # the lengths of the trees' texts have changed; without them LightGBM finds the trees by itself
    return None if name == "tree_sizes" or not line else line


def _rounded(name: str, value: str) -> str:
    if name == "leaf_value":
        return " ".join(_decimal(float(number)) for number in value.split())
    if name == "threshold":
        return " ".join(f"{float(number):.{_THRESHOLD_DIGITS}g}" for number in value.split())
    return value


def _decimal(number: float) -> str:
    return f"{number:.{_LEAF_DECIMALS}f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeModel(LabelModel):
    """One label as a LightGBM ensemble of the latency or of its logarithm."""

    ensemble: TreeEnsemble
    source: str
    logarithmic: bool
    least_ns: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Predict latencies, never below a quarter of the least one measured."""
        values = self.ensemble.predict(inputs.matrix) if len(inputs) else np.empty(0)
        latency: Floats = np.maximum(np.exp(values) if self.logarithmic else values, self.least_ns)
        return latency

    def text(self) -> str:
        """Write the trees, after a first line with everything else."""
        return to_text({"logarithmic": self.logarithmic, "least_ns": self.least_ns}) + self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEstimator(PerLabel):
    """Boosted trees of the latency or, with `logarithmic`, of its logarithm."""

    summary: ClassVar[str] = "LightGBM on latency"
    logarithmic: bool = False

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> TreeModel:
        """Fit trees; held-out shape groups choose the number of rounds."""
        folds = group_folds(shape_groups(inputs.kernels), _FOLDS)
        target = np.log(latency_ns) if self.logarithmic else latency_ns
        source, _ = fit_trees(inputs.matrix, target, inputs.categorical, folds)
        return TreeModel(
            ensemble=ensemble_from(source),
            source=source,
            logarithmic=self.logarithmic,
            least_ns=float(latency_ns.min()) / 4,
        )

    def restore_label(self, text: str) -> TreeModel:
        """Read trees. Raises `KeyError` or `ValueError` on foreign text."""
        first, _, source = text.partition("\n")
        return TreeModel(ensemble=ensemble_from(source), source=source, **from_text(first))
