"""Fleets from a pool: the devices of a problem that are rented, what they cost, and placements on them."""
