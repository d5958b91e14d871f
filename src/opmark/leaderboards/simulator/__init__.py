"""opsim 1: the compiled event simulation, the loads of a full pipeline, traces, and published cost models."""
