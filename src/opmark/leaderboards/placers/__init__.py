"""Placement algorithms, one file each."""
