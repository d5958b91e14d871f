"""Rules for kernels of kinds that a published table lacks.

Published tables of a GPU hold a few operators. Attention is the sum of its parts, unfused: two batched products and a
softmax. Other matrix work (gradients of convolutions and attention, transposed convolutions, recurrent layers) costs
what a measured relative costs, times the ratio of their FLOPs. Everything else moves its bytes at the rate of the
measured kernels without matrix work. `benchmarks/external.py --derived` judges the rules where tables allow it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS, kind_of, work_of
from opmark.kinds._shared import convolution
from opmark.kinds._shared.convolution import ConvolutionSizes

PARTS, WORK, BYTES = "sum of parts", "work ratio", "bytes moved"
RULES = ("", BYTES, WORK, PARTS)
# The product whose cost per FLOP stands for matrix work without a nearer relative: square and large.
_USUAL = 1024


@dataclass(frozen=True, slots=True)
class Derivation:
    """A rule, and the measured kinds of kernels by which it works, each with the factor of its latency."""

    rule: str
    parts: tuple[tuple[Kernel, float], ...] = ()


def derivation(kernel: Kernel, known: Collection[str]) -> Derivation:
    """The rule for `kernel`, whose parts are of `known` kinds only."""
    kind = kind_of(kernel)
    if not kind.matrix:
        return Derivation(BYTES)
    p = kind.parse(kernel)
    parts: list[Kernel] = []
    if kernel.kind.startswith("attention"):
        parts = _attention(p)
    elif isinstance(p, ConvolutionSizes) and kernel.kind != "conv-int8":
        parts = [_convolution(p)]
    if parts and all(part.kind in known for part in parts):
        if kernel.kind == "attention":
            return Derivation(PARTS, tuple((part, 1.0) for part in parts))
        return _by_work(kernel, parts)
    if "gemm" in known:
        rows = max(1, round(work_of(kernel).flops / (2 * _USUAL * _USUAL)))
        return _by_work(kernel, [_kernel("gemm", m=rows, n=_USUAL, k=_USUAL)])
    return Derivation(BYTES)


def _by_work(kernel: Kernel, parts: list[Kernel]) -> Derivation:
    ratio = work_of(kernel).flops / max(sum(work_of(part).flops for part in parts), 1)
    return Derivation(WORK, tuple((part, ratio) for part in parts))


def _attention(p: Any) -> list[Kernel]:
    batch = (p.batch * p.heads,)
    shapes = {"batch_a": batch, "batch_b": batch, "m": p.query_length}
    found = [
        _kernel("matmul", **shapes, k=p.head_size, n=p.key_length),
        _kernel("softmax", shape=(batch[0] * p.query_length, p.key_length), axis=1),
        _kernel("matmul", **shapes, k=p.key_length, n=p.value_size),
    ]
    if getattr(p, "hidden", 0):
        width = p.heads * (2 * p.head_size + p.value_size)
        found.append(_kernel("gemm", m=p.batch * p.query_length, n=width, k=p.hidden))
    return found


def _convolution(p: ConvolutionSizes) -> Kernel:
    """A forward convolution of the same sizes; gradients and transposed ones state one pad per axis."""
    sizes = convolution.sizes_of(p)
    pads = tuple(sizes["pads"])
    return _kernel("conv", **(sizes | {"pads": pads * 2 if len(pads) == len(p.size) else pads}))


def _kernel(kind: str, **parameters: Any) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))
