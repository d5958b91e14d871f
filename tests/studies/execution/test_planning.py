"""The crossings of a placement on two runtimes, one of which has several names for the same content."""

from dataclasses import replace

import pytest
from tests.studies.execution.tiny import MadeUpCosts

from opmark.core.errors import PlacementError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.leaderboards.making.units import make_problem, unit_kernels
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.studies.execution.planning import Network, PlannedProgramme, plan_programme

SPEC = TensorSpec((1, 8))


def node(name: str, inputs: str, output: str, scope: str, *, free: bool = False) -> Node:
    return Node(
        name=name,
        kernel=Kernel.of("elementwise", {"name": name}),
        work=Work(flops=1, read_bytes=1, written_bytes=1),
        inputs=tuple(inputs.split()),
        outputs=(output,),
        scope=scope,
        free=free,
    )


def graph(language: str, *nodes: Node) -> Graph:
    tensors = {name: SPEC for item in nodes for name in (*item.inputs, *item.outputs)}
    return Graph(name="net", language=language, nodes=nodes, tensors=tensors, inputs=("in",), outputs=("out",))


# One runtime keeps a tensor and a reshaped copy of it, the other one reads the tensor itself.
COPYING = graph(
    "onnx",
    node("make", "in", "t", "make"),
    node("reshape", "t", "r", "make"),
    node("left", "t", "a", "left"),
    node("right", "r", "b", "right"),
    node("sum", "a b", "out", "sum"),
)
PLAIN = graph(
    "aten",
    node("m", "in", "v", "make"),
    node("l", "v", "x", "left"),
    node("r", "v", "y", "right"),
    node("s", "x y", "out", "sum"),
)
SAME = {"t": "v", "r": "v", "v": "t", "a": "x", "b": "y", "x": "a", "y": "b", "out": "out", "in": "in"}


def same_as(_target: str, tensor: str, _unit: str, _other: str) -> str:
    if tensor not in SAME:
        raise PlacementError(f"nothing equals {tensor}")
    return SAME[tensor]


def planned(place: dict[str, str], *, own_copies: bool = False, plain: Graph = PLAIN) -> PlannedProgramme:
    devices = tuple(
        Device(name=name, type=name, memory_bytes=1 << 30, target=name, own_copies=own_copies)
        for name in ("one", "two")
    )
    links = tuple(
        Link(source=a, destination=b, latency_ns=700, bandwidth_bytes_per_s=1e18)
        for a, b in (("one", "two"), ("two", "one"))
    )
    cluster = Cluster(name="pair", devices=devices, links=links)
    graphs = {"one": COPYING, "two": plain}
    problem = make_problem("net", graphs, cluster, dict.fromkeys(graphs, MadeUpCosts()))
    problem = with_layout(problem)
    network = Network(
        graphs=graphs,
        units=unit_kernels(graphs, cluster),
        same_as=same_as,
        size_bytes=lambda _target, _name: 32,
    )
    return plan_programme(problem, evaluate(problem, Solution(device=place)), network)


def with_layout(problem: Problem) -> Problem:
    tensors = tuple(replace(tensor, boundary_ns={"one": 50, "two": 30}) for tensor in problem.tensors)
    return replace(problem, tensors=tensors)


def test_a_tensor_arrives_under_each_name_that_is_read() -> None:
    found = planned({"make": "two", "left": "one", "right": "one", "sum": "one"}).programme
    assert [(one.tensor, one.received_as) for one in found.crossings if one.destination == 0] == [
        ("v", "t"),
        ("v", "r"),
    ]
    received = [number for step in found.devices[0].steps for number in step.receives]
    assert sorted(received) == [0, 1]
    assert len({one.offset for one in found.crossings if one.tensor == "v"}) == 1


def test_ends_of_a_cut_are_paid_where_they_are_spent() -> None:
    place = {"make": "one", "left": "two", "right": "one", "sum": "one"}
    for own_copies in (False, True):
        found = planned(place, own_copies=own_copies)
        crossings = {one.tensor: one.number for one in found.programme.crossings}
        devices = enumerate(found.programme.devices)
        units = {unit: (d, n) for d, work in devices for n, step in enumerate(work.steps) for unit in step.units}
        assert found.transfer_ns[crossings["t"]] == 701
        # `make` has two kernels of 100 µs, and turns its result into the plain layout; `left` turns it back.
        assert found.run_ns[units["make"]] == 200_050
        assert found.run_ns[units["left"]] == 100_060


def test_a_view_that_the_other_runtime_lacks_is_made_again_where_it_is_read() -> None:
    slicing = graph(
        "aten",
        node("m", "in", "v", "make"),
        node("half", "v", "h", "make", free=True),
        node("l", "h", "x", "left"),
        node("r", "v", "y", "right"),
        node("s", "x y", "out", "sum"),
    )
    place = {"make": "one", "left": "two", "right": "one", "sum": "one"}
    found = planned(place, plain=slicing).programme
    assert [(one.tensor, one.received_as) for one in found.crossings if one.destination == 1] == [("t", "v")]
    (step,) = found.devices[1].steps
    assert [slicing.nodes[kernel].name for kernel in step.kernels] == ["half", "l"]


def test_a_tensor_that_the_other_runtime_lacks_is_refused() -> None:
    strange = graph(
        "aten",
        node("m", "in", "z", "make"),
        node("l", "z", "x", "left"),
        node("r", "z", "y", "right"),
        node("s", "x y", "out", "sum"),
    )
    with pytest.raises(PlacementError, match="nothing equals z"):
        planned({"make": "one", "left": "two", "right": "one", "sum": "one"}, plain=strange)
