"""A small ONNX network of two branches, and a problem of it with made-up costs."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.kernels.graph import Graph
from opmark.leaderboards.making.units import make_problem
from opmark.leaderboards.problem.problem import Problem
from opmark.models.resolve import graph_of

TARGET = "onnxruntime-cpu-t1"


class _Prediction:
    def __init__(self, graph: Graph) -> None:
        self.node_ns = np.array([0.0 if node.free else 1e5 for node in graph.nodes])
        self.total_ns = float(self.node_ns.sum())


class MadeUpCosts:
    """Every kernel takes 100 µs."""

    def network(self, graph: Graph) -> _Prediction:
        """The cost of a graph."""
        return _Prediction(graph)


def branchy(path: Path) -> Path:
    """Two convolutions of one input, which end in a sum and a product."""
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random.standard_normal((32, 16, 3, 3)).astype(np.float32) / 12, f"w{n}") for n in "ab"
    ]
    nodes = [
        helper.make_node("Conv", ["x", "wa"], ["a"], name="conv_a", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "wb"], ["b"], name="conv_b", pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["sa"], name="gate"),
        helper.make_node("Mul", ["sa", "b"], ["m"], name="product"),
        helper.make_node("ReduceMean", ["m", "axes"], ["y"], name="mean", keepdims=0),
        helper.make_node("Add", ["a", "b"], ["z"], name="sum"),
    ]
    weights.append(numpy_helper.from_array(np.array([2, 3], dtype=np.int64), "axes"))
    graph = helper.make_graph(
        nodes,
        "branchy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 24, 24])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 32, 24, 24]),
        ],
        initializer=weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def two_cores(targets: tuple[str, str] = (TARGET, TARGET)) -> Cluster:
    """Two devices of these targets, and links in both directions."""
    devices = tuple(
        Device(name=f"core{n}", type=target, memory_bytes=1 << 30, target=target) for n, target in enumerate(targets)
    )
    links = tuple(
        Link(source=a, destination=b, latency_ns=5000, bandwidth_bytes_per_s=1e10)
        for a, b in (("core0", "core1"), ("core1", "core0"))
    )
    return Cluster(name="pair", devices=devices, links=links)


def made_problem(model: str, cache: Path, cluster: Cluster | None = None) -> Problem:
    """The problem of `model` on two cores, with made-up costs."""
    cluster = cluster or two_cores()
    graphs = {device.target: graph_of(model, device.target, cache=cache) for device in cluster.devices}
    costs = {target: MadeUpCosts() for target in graphs}
    return make_problem("tiny", graphs, cluster, costs, model=model)
