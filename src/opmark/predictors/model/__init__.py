"""Predictors of one target: training, storage, and the prediction of kernels and networks."""
