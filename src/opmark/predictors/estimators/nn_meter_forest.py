"""A baseline: nn-Meter's random forest on nn-Meter's features and its raw latencies.

Li Lyna Zhang et al.: nn-Meter. MobiSys 2021. Its features are the input height, channels in and out, kernel size,
stride, FLOPs / 2e6 and parameters / 1e6; a kind without such sizes uses all its raw sizes instead. nn-Meter's forests
come from scikit-learn; here LightGBM's `boosting='rf'` grows them as deep: leaves of one row, 320 trees, squared error
on milliseconds, 63 % of the rows per tree (as in a bootstrap) and 6 of 7 features per split.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel
from opmark.predictors.learners.tree_ensemble import TreeEnsemble
from opmark.predictors.learners.trees import FIXED, ensemble_from

_TREES = 320
_MOST_LEAVES = 4096
# nn-Meter's names, and the names of the same size in our kinds; the first one that a kind has is taken.
_SIZES = {
    "HW": ("height", "in_height", "input_height", "h"),
    "CIN": ("in_channels", "channels_in", "channels", "k"),
    "COUT": ("out_channels", "channels_out", "n"),
    "K": ("kernel_height", "kernel_h", "kernel"),
    "S": ("stride_height", "stride_h", "stride"),
}
_FEWEST_SIZES = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest(LabelModel):
    """One label as a forest of milliseconds."""

    ensemble: TreeEnsemble
    source: str
    least_ns: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Average the trees."""
        values = self.ensemble.predict(nn_meter_features(inputs)) if len(inputs) else np.empty(0)
        latency: Floats = np.maximum(values * 1e6, self.least_ns)
        return latency

    def text(self) -> str:
        """Write the trees, after a first line with everything else."""
        return to_text({"least_ns": self.least_ns}) + self.source


class NnMeterForest(PerLabel):
    """Learns milliseconds with deep trees; no feature counts bytes."""

    summary: ClassVar[str] = "nn-Meter's random forest on nn-Meter's features"
    plain_sum: ClassVar[bool] = True

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> Forest:
        """Grow the forest."""
        import lightgbm

        matrix = nn_meter_features(inputs)
        settings = FIXED | {
            "objective": "regression",
            "boosting": "rf",
            "bagging_freq": 1,
            "bagging_fraction": 0.632,
            "feature_fraction_bynode": 6 / 7,
            "num_leaves": int(np.clip(len(inputs), 2, _MOST_LEAVES)),
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 0.0,
            "min_data_in_bin": 1,
            "max_bin": 1023,
            "bin_construct_sample_cnt": max(len(inputs), 1),
        }
        dataset = lightgbm.Dataset(matrix, latency_ns / 1e6, params=settings)
        # a forest cannot grow from one row; two copies of it give a tree of one leaf
        if len(inputs) < 2:
            dataset = lightgbm.Dataset(np.repeat(matrix, 2, axis=0), np.repeat(latency_ns / 1e6, 2), params=settings)
        booster = lightgbm.train(settings, dataset, num_boost_round=_TREES)
        source: str = booster.model_to_string()
        return Forest(ensemble=ensemble_from(source), source=source, least_ns=float(latency_ns.min()) / 4)

    def restore_label(self, text: str) -> Forest:
        """Read the trees."""
        first, _, source = text.partition("\n")
        return Forest(ensemble=ensemble_from(source), source=source, least_ns=float(from_text(first)["least_ns"]))


def nn_meter_features(inputs: Inputs) -> Floats:
    """Make nn-Meter's columns, or columns of all raw sizes for a kind without them; FLOPs and parameters are last."""
    columns = []
    for names in _SIZES.values():
        known = [name for name in names if name in inputs.raw]
        if known:
            columns.append(inputs.raw[known[0]])
    if len(columns) < _FEWEST_SIZES:
        columns = list(inputs.raw.values())
    return np.column_stack([*columns, inputs.flops / 2e6, inputs.weight_bytes / 4e6])


ESTIMATOR = NnMeterForest()
