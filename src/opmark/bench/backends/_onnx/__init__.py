"""ONNX models made of single kernels and of short sequences."""
