"""Checks that a release must pass, one file each."""
