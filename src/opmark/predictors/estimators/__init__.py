"""Latency estimators, one file each."""

from opmark.core.registry import Registry
from opmark.predictors.learners.estimator import Estimator

ESTIMATORS: Registry[Estimator] = Registry("opmark.predictors.estimators", "ESTIMATOR", "estimator")
