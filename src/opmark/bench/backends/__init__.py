"""Runtimes that can be timed, one file each: the only timing code."""
