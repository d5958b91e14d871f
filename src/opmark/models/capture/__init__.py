"""Captures of graphs: ATen traces, and ONNX Runtime's optimised graphs."""
