"""Measuring runs: rounds, verdicts and the journal they are written to."""
