"""Latency predictors trained on releases."""
