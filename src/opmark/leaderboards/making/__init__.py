"""Problems made from networks, clusters and predictors, drawn from a seed, or read from published files."""
