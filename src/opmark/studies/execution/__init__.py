"""Placements executed on this machine, beside their prediction."""
