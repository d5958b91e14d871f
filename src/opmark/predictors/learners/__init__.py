"""Regressors and the interfaces that every estimator implements."""
