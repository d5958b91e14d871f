"""Networks in: capture the graph of kernels a runtime really executes."""
