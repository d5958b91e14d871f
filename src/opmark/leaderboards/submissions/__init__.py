"""Submissions of others: check, pack and run them against the clock, and rank their answers."""
