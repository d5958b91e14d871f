"""Kernels larger than the measured ones: limits of columns, and laws that go on where measuring ended."""
