"""Checks a release must pass, one file each."""
