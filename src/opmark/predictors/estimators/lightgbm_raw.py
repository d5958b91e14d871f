"""A baseline: LightGBM on the latency itself, as in most published predictors."""

from opmark.predictors.learners.trees import TreeEstimator

ESTIMATOR = TreeEstimator()
