"""The quickstart: measure this machine, train predictors, check them, rank placers, and report."""
