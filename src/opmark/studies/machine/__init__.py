"""This machine: its facts, its GPUs, its current clock, and advice on measuring with it."""
