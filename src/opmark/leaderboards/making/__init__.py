"""Make placement problems from networks, clusters and predictors, from a seed, or from published files."""
