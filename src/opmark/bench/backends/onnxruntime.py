"""ONNX Runtime: single kernels without optimisation, whole networks with all optimisations, buffers bound once."""

from opmark.bench.backends._onnx.runtime import OnnxRuntime

BACKEND = OnnxRuntime()
