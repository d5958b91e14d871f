"""The vocabulary that all rooms share: errors, units, kernels, graphs, targets, measurements, files."""
