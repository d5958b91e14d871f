"""Objectives of a problem, one file each."""
