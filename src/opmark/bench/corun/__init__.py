"""Kernels beside work on another core: their slowdown, measured in turns."""
