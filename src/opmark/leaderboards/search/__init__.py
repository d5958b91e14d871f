"""Search for placements: an incumbent, starting points, moves, annealing runs, and a portfolio on top."""
