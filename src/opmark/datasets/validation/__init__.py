"""Checks of a release: the interface of a check, checksums, and rates that hardware cannot reach."""
