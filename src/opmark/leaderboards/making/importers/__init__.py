"""Formats of published placement problems, one file each."""
