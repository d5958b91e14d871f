"""Active sampling: measure in rounds, each where predictions are least certain, until the error is small enough."""
