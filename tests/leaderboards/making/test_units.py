"""Units that are matched on every target, and the costs of problems made from graphs."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.leaderboards.making.kernel_matching import units_of
from opmark.leaderboards.making.units import make_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.simulator.evaluation import evaluate

SPEC = TensorSpec((1, 8))


def node(name: str, inputs: str, output: str, **facts) -> Node:
    kernel = Kernel.of("elementwise", {"name": name})
    work = Work(flops=1, read_bytes=1, written_bytes=1)
    return Node(name=name, kernel=kernel, work=work, inputs=tuple(inputs.split()), outputs=(output,), **facts)


def network(language: str, *nodes: Node, target: str = "", outputs: tuple[str, ...] = ("out",)) -> Graph:
    made = {name for item in nodes for name in item.outputs}
    weights = {name: SPEC for item in nodes for name in item.inputs if name.startswith("w")}
    return Graph(
        name="net",
        language=language,
        nodes=nodes,
        tensors={"in": SPEC} | dict.fromkeys(made, SPEC),
        inputs=("in",),
        outputs=outputs,
        weights=weights,
        target=target,
    )


def fused() -> Graph:
    """conv+relu as one kernel, a reorder before a pool."""
    return network(
        "onnx",
        node("Conv", "in w1", "a", origins=("conv", "relu"), scope="stem.conv"),
        node("Reorder", "a", "b", origins=("inserted",)),
        node("Pool", "b", "p", origins=("pool",), scope="pool"),
        node("Gemm", "p w2", "out", origins=("gemm",), scope="head"),
        target="ort",
    )


def plain() -> Graph:
    """The same in single steps, with another batch of names and a free view."""
    return network(
        "onnx",
        node("conv", "in w1", "c", origins=("conv",)),
        node("relu", "c", "r", origins=("relu",)),
        node("pool", "r", "p", origins=("pool",)),
        node("view", "p", "v", origins=("flatten",), free=True),
        node("gemm", "v w2", "out", origins=("gemm",)),
        target="plain",
    )


def traced() -> Graph:
    return network(
        "aten",
        node("conv2d", "in w1", "c", scope="stem.conv"),
        node("empty", "in", "junk", scope="", free=True),
        node("batch_norm", "c", "n", scope="stem.bn"),
        node("relu", "n", "r", scope="stem.act"),
        node("max_pool", "r", "p", scope="pool"),
        node("view", "p", "v", scope="", free=True),
        node("addmm", "v w2", "out", scope="head"),
        target="torch",
    )


def names(graphs: dict[str, Graph]) -> list[dict[str, list[str]]]:
    return [
        {target: [graphs[target].nodes[n].name for n in nodes] for target, nodes in unit.items()}
        for unit in units_of(graphs)
    ]


def test_within_a_language_units_join_by_origin() -> None:
    assert names({"ort": fused(), "plain": plain()}) == [
        {"ort": ["Conv", "Reorder"], "plain": ["conv", "relu"]},
        {"ort": ["Pool"], "plain": ["pool", "view"]},
        {"ort": ["Gemm"], "plain": ["gemm"]},
    ]


def test_between_languages_units_join_by_module_path() -> None:
    assert names({"ort": fused(), "torch": traced()}) == [
        {"ort": ["Conv", "Reorder"], "torch": ["conv2d", "empty", "batch_norm", "relu"]},
        {"ort": ["Pool"], "torch": ["max_pool", "view"]},
        {"ort": ["Gemm"], "torch": ["addmm"]},
    ]


def test_padding_belongs_to_the_convolution_after_it() -> None:
    blocks = [
        node("Conv0", "in w1", "a", scope="net.0.norm"),
        node("Conv1", "a w2", "out", scope="net.1.norm"),
    ]
    fine = network(
        "aten",
        node("pad0", "in", "p0", scope="net.0"),
        node("conv0", "p0 w1", "c0", scope="net.0.conv"),
        node("norm0", "c0", "n0", scope="net.0.norm"),
        node("act0", "n0", "r0", scope="net.0.act"),
        node("pad1", "r0", "p1", scope="net.1"),
        node("conv1", "p1 w2", "c1", scope="net.1.conv"),
        node("norm1", "c1", "n1", scope="net.1.norm"),
        node("act1", "n1", "out", scope="net.1.act"),
    )
    assert names({"ort": network("onnx", *blocks), "torch": fine}) == [
        {"ort": ["Conv0"], "torch": ["pad0", "conv0", "norm0", "act0"]},
        {"ort": ["Conv1"], "torch": ["pad1", "conv1", "norm1", "act1"]},
    ]


def test_one_graph_keeps_every_kernel_apart() -> None:
    alone = names({"ort": fused()})
    assert [unit["ort"] for unit in alone] == [["Conv"], ["Reorder"], ["Pool"], ["Gemm"]]
    assert [unit["plain"] for unit in names({"plain": plain()})] == [["conv"], ["relu"], ["pool", "view"], ["gemm"]]


def test_units_that_wait_for_each_other_become_one() -> None:
    # block a holds the first and the last step, b the one between: a → b → a
    one = network(
        "onnx",
        node("first", "in", "x", scope="a"),
        node("middle", "x", "y", scope="b"),
        node("last", "y", "out", scope="a"),
    )
    other = network("aten", node("f", "in", "x", scope="a"), node("m", "x", "out", scope="b"))
    assert names({"one": one, "other": other}) == [{"one": ["first", "middle", "last"], "other": ["f", "m"]}]


def test_graphs_without_common_names_are_refused() -> None:
    foreign = network("onnx", node("Conv", "in w1", "out", origins=("conv",)))
    with pytest.raises(ContentError, match="share no operator names"):
        units_of({"ort": foreign, "torch": traced()})


@dataclass
class Costs:
    """10 ns for the first node, 20 for the second, …; `extra` belongs to the network as a whole."""

    extra: float = 0.0

    def network(self, graph: Graph) -> "Costs":
        self.node_ns = np.array([0.0 if n.free else 10.0 * (i + 1) for i, n in enumerate(graph.nodes)])
        self.total_ns = float(self.node_ns.sum()) + self.extra
        return self


def cluster() -> Cluster:
    devices = tuple(
        Device(name=name, type=kind, target=target, memory_bytes=10**6)
        for name, kind, target in (("cpu", "c", "ort"), ("gpu", "g", "torch"))
    )
    links = tuple(
        Link(source=a, destination=b, latency_ns=1, bandwidth_bytes_per_s=1e9)
        for a, b in (("cpu", "gpu"), ("gpu", "cpu"))
    )
    return Cluster(name="two", devices=devices, links=links, host="cpu")


def test_a_problem_carries_costs_tensors_and_weights() -> None:
    graphs = {"ort": fused(), "torch": traced()}
    problem = make_problem("p", graphs, cluster(), {"ort": Costs(), "torch": Costs()}, bundles={"ort": "b1"})
    assert [unit.name for unit in problem.units] == ["Conv", "Pool", "Gemm"]
    assert problem.units[0].exec_ns == {"c": 30, "g": 10 + 30 + 40}
    assert [unit.weights for unit in problem.units] == [("w1",), (), ("w2",)]
    assert problem.units[0].workspace_bytes == SPEC.size_bytes, "what Conv hands to its own Reorder"
    edges = {(t.name, t.producer, t.consumers, t.output) for t in problem.tensors}
    assert edges == {
        ("in", "", ("Conv",), False),
        ("b", "Conv", ("Pool",), False),
        ("p", "Pool", ("Gemm",), False),
        ("out", "Gemm", (), True),
    }
    assert problem.provenance.bundles == {"ort": "b1"}
    assert problem.provenance.graphs["torch"] == graphs["torch"].id


@pytest.mark.parametrize("extra", [0.0, 33.0])
def test_everything_on_one_device_costs_the_predicted_network(extra: float) -> None:
    chain = [node(f"n{i}", a, b, origins=(f"n{i}",)) for i, (a, b) in enumerate(pairwise(["in", *"abcdefgh", "out"]))]
    graph = network("onnx", *chain, target="ort")
    alone = replace(cluster(), devices=cluster().devices[:1], links=())
    problem = make_problem("p", {"ort": graph}, alone, {"ort": Costs(extra)})
    found = evaluate(problem, Solution(device={unit.name: "cpu" for unit in problem.units}))
    assert found.cost == pytest.approx(Costs(extra).network(graph).total_ns, rel=0.01)


def test_precedence_of_every_target_holds() -> None:
    # only the second target's b reads what a makes
    one = network("onnx", node("A", "in", "x", scope="a"), node("B", "in", "out", scope="b"), outputs=("out", "x"))
    two = network("aten", node("a", "in", "x", scope="a"), node("b", "x", "out", scope="b"))
    problem = make_problem("p", {"ort": one, "torch": two}, cluster(), {"ort": Costs(), "torch": Costs()})
    assert ("x@torch", "A", ("B",)) in {(t.name, t.producer, t.consumers) for t in problem.tensors}


def test_a_device_without_graph_or_with_a_contradicting_type_is_named() -> None:
    with pytest.raises(ContentError, match="no graph or predictor for target 'torch'"):
        make_problem("p", {"ort": fused()}, cluster(), {"ort": Costs()})
    devices = tuple(replace(device, type="same") for device in cluster().devices)
    graphs, costs = {"ort": fused(), "torch": traced()}, {"ort": Costs(), "torch": Costs()}
    with pytest.raises(ContentError, match="type 'same' already stands for target 'ort'"):
        make_problem("p", graphs, replace(cluster(), devices=devices), costs)


def test_graphs_of_one_trace_have_the_units_of_each_alone() -> None:
    # a second view reads the first one, and nothing costly makes what `shape` gives
    nodes = [
        node("shape", "in", "s", free=True, scope="body.0"),
        node("a", "in w1", "x", scope="body.0"),
        node("view", "x", "v", free=True),
        node("view2", "v s", "u", free=True, scope="body.1"),
        node("b", "u", "y", scope="body.1"),
        node("out", "y x", "out", scope="head"),
    ]
    alone = network("aten", *nodes, target="one")
    slower = [replace(one, kernel=Kernel.of("elementwise", {"name": f"slow {one.name}"})) for one in nodes]
    both = units_of({"one": alone, "two": network("aten", *slower, target="two")})
    assert both == tuple({"one": unit["one"], "two": unit["one"]} for unit in units_of({"one": alone}))
    # a graph without the scopes joins its views elsewhere, so it must be asked, too
    bare = network("aten", *(replace(one, scope="") for one in nodes), target="three")
    assert [unit["three"] for unit in units_of({"one": alone, "three": bare})] != [unit["one"] for unit in both]
