"""Fusion reports: which pairs of operators a runtime computes as one kernel."""
