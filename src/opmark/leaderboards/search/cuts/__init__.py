"""Contiguous placements: a graph cut into stages, by dynamic programs over its ideals and by repair."""
