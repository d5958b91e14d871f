"""The rules a simulation can follow, one file each."""
