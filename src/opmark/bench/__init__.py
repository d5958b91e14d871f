"""Measure kernels and networks on this machine."""
