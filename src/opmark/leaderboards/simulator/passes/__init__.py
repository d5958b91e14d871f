"""Costs that take several passes through a graph at once, one file each."""
