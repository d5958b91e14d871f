"""A machine whose latencies follow a known law, for the tests of this room."""

import math
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.measurements.measurement import OK, Measurement, NetworkMeasurement
from opmark.kinds import KINDS, work_of
from opmark.predictors.inputs.features import Hardware

TARGET = Target(device="acme-1", backend="onnxruntime", provider="cpu", version="1.31")
HARDWARE = Hardware(vector_bytes=64, cache_bytes=(32 << 10, 1 << 20, 32 << 20))
KIND_NAMES = ("gemm", "softmax", "conv")


@cache
def kernels(kind: str, count: int, seed: int = 0) -> tuple[Kernel, ...]:
    """The first `count` distinct kernels of `kind` drawn from its own space."""
    family = KINDS.load(kind)
    source = random.Random(seed)
    found: dict[str, Kernel] = {}
    for _ in range(200 * count):
        values = {name: axis.at(source.random()) for name, axis in family.space.items()}
        drawn = family.draw(values, Setting(language="onnx"))
        if drawn is not None:
            kernel = family.kernel(drawn)
            found.setdefault(kernel.key, kernel)
        if len(found) == count:
            return tuple(found.values())
    raise AssertionError(f"{kind} gives only {len(found)} kernels")


def hot_ns(kernel: Kernel) -> float:
    """A roofline whose efficiency depends smoothly on size and on whether a size is a multiple of the vector."""
    work = work_of(kernel)
    params = kernel.params
    ragged = any(isinstance(params.get(name), int) and params[name] % 16 for name in ("n", "k", "channels_out"))
    fill = 1 - 0.5 * math.exp(-work.flops / 2e7)
    return 300 + (work.flops / 60 / fill + work.moved_bytes / 12) * (1.25 if ragged else 1.0)


def rotated_ns(kernel: Kernel) -> float:
    """Everything comes from memory."""
    return hot_ns(kernel) + work_of(kernel).moved_bytes / 15


def measurement(kernel: Kernel, *, noise: float = 0.01, **changes: Any) -> Measurement:
    """A row of `kernel` whose error depends on nothing but its key."""
    error = random.Random(kernel.key).gauss(0, noise)
    fields: dict[str, Any] = {
        "status": OK,
        "latency_hot_ns": hot_ns(kernel) * math.exp(error),
        "latency_rotated_ns": rotated_ns(kernel) * math.exp(error),
        "between_process_variation": 0.01,
        "target": TARGET.name,
    }
    return Measurement(kernel=kernel, work=work_of(kernel), **{**fields, **changes})


def rows(count: int, kinds: Sequence[str] = KIND_NAMES, **changes: Any) -> tuple[Measurement, ...]:
    """`count` measurements of each kind."""
    return tuple(measurement(kernel, **changes) for kind in kinds for kernel in kernels(kind, count))


def graph(name: str, chosen: Sequence[Kernel], *, weight_bytes: int = 0, free: int = 0) -> Graph:
    """A chain of `chosen` and some free nodes; `weight_bytes` is what its constants take, seen by one view more."""
    nodes, last = [], "in"
    tensors = {"in": TensorSpec((1,))}
    for number, kernel in enumerate([*chosen, *chosen[:free]]):
        output = f"t{number}"
        tensors[output] = TensorSpec((1,))
        is_free = number >= len(chosen)
        node = Node(name=output, kernel=kernel, work=work_of(kernel), inputs=(last,), outputs=(output,), free=is_free)
        nodes.append(node)
        last = output
    if weight_bytes:
        tensors["seen"] = TensorSpec((1,))
        first = nodes[0]
        view = Node(name="seen", kernel=first.kernel, work=first.work, inputs=("w",), outputs=("seen",), free=True)
        nodes.append(view)
    return Graph(
        name=name,
        language="onnx",
        nodes=tuple(nodes),
        tensors=tensors,
        inputs=("in",),
        outputs=(last,),
        weights={"w": TensorSpec((weight_bytes,), "int8")} if weight_bytes else {},
    )


def network(one: Graph, *, share: float, gap_ns: float = 0.0, **changes: Any) -> NetworkMeasurement:
    """`one` measured, if its weights rotated by `share` and its activations not at all, plus a gap for every call."""
    total = len(one.nodes) * gap_ns
    for kernel in [node.kernel for node in one.costly]:
        work = work_of(kernel)
        weights = work.weight_bytes / work.moved_bytes
        total += hot_ns(kernel) + share * weights * (rotated_ns(kernel) - hot_ns(kernel))
    fields: dict[str, Any] = {
        "family": one.name,
        "target": TARGET.name,
        "graph_id": one.id,
        "status": OK,
        "role": "training",
        "latency_ns": total,
    }
    return NetworkMeasurement(network=one.name, **{**fields, **changes})
