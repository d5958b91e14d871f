"""Releases: immutable, validated tables of measurements."""
