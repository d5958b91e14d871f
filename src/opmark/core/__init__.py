"""The vocabulary every room shares: errors, units, tensors, kernels, graphs, targets, measurements, files."""
