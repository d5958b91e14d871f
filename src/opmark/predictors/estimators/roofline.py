"""A baseline: non-negative time per FLOP, per byte and per call."""

from opmark.predictors.learners.roofline import RooflineEstimator

ESTIMATOR = RooflineEstimator()
