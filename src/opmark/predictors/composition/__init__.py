"""The composition of a network from its kernels: its constants, and their fit on measured networks."""
