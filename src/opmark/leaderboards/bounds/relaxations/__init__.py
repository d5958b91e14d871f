"""Relaxations of a problem, which no placement can beat, one file each."""
