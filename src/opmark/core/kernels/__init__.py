"""Kernels and graphs: shapes, operator calls, kinds, their work, and fusion."""
