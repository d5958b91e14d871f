"""The runtimes that can be timed, one file each."""
