"""Schedules of micro-batches in a pipeline, one file each."""
