"""Latency estimators, one file each."""
