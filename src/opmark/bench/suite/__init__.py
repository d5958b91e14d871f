"""Suites and the plans of kernels and networks that come out of them."""
