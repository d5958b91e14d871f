"""The copies of a network that serve a trace of requests, and their compiled simulation."""
