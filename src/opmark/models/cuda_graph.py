"""The kernels that eager torch runs on a CUDA GPU, derived from the calls on the processor.

A module makes the same ATen calls on either device except for attention: `scaled_dot_product_attention` picks a kernel
by device, element type and mask. Capturing under fake CUDA tensors would need torch's CUDA build to make that choice:
without it the composite falls apart into products and a softmax, which no GPU runs.
"""

from dataclasses import replace

from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of, work_of

CUDA_RUNTIME = "torch-cuda"

_ATTENTION = "attention"
_HALVES = frozenset({"float16", "bfloat16"})
# The widest head that the flash kernels have.
_WIDEST_FLASH_HEAD = 256


def as_on_gpu(graph: Graph) -> Graph:
    """`graph` of ATen calls, captured for the processor, as a CUDA GPU runs it.

    Attention takes the first suitable kernel in torch's order (`sdp_utils.cpp`): flash in 16 bits without a mask, else
    the memory-efficient one. Graphs without attention come back unchanged.
    """
    if not any(node.kernel.kind == _ATTENTION for node in graph.nodes):
        return graph
    return replace(graph, nodes=tuple(map(_on_gpu, graph.nodes)))


def kernel_on_gpu(kernel: Kernel) -> Kernel:
    """`kernel` as a CUDA GPU runs it: attention in the variant that torch picks there, all others unchanged."""
    if kernel.kind != _ATTENTION:
        return kernel
    kind = kind_of(kernel)
    found = kind.parse(kernel)
    if found.variant == "math":
        return kernel
    square = found.head_size == found.value_size
    flash = found.dtype in _HALVES and not found.mask_dtype and square and found.head_size <= _WIDEST_FLASH_HEAD
    return kind.kernel(replace(found, variant="flash" if flash else "efficient"))


def _on_gpu(node: Node) -> Node:
    kernel = kernel_on_gpu(node.kernel)
    return node if kernel == node.kernel else replace(node, kernel=kernel, work=work_of(kernel))
