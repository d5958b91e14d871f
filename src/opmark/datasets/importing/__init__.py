"""Releases made from tables that others published."""
