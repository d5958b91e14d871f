"""Evaluation of estimators on kernels and networks that they were not trained on."""
