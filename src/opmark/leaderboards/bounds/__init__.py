"""Lower bounds on the cost of a problem, and an upper bound on what a given placement costs."""
