"""Measurements: the journal of a run and its records, the environment, and the statistics of samples."""
