"""The default: LightGBM and a Gaussian process on log(latency / roofline)."""

from opmark.predictors.learners.utilisation import Utilisation

ESTIMATOR = Utilisation()
