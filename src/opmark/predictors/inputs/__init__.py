"""Kernels as rows of features, and the rows of a release as tables."""
