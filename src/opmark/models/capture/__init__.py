"""Captures, one runtime per file."""
