"""Readers of published tables, one file each."""
