"""Shapes and formulas that several kinds share, independent of any framework."""
