"""Networks cut into the kernels of a runtime that shows no graph of them, by verdicts on pairs of operators.

As in nn-Meter (Zhang et al., MobiSys 2021, section 3.3): an operator joins the kernel that makes its input if the
runtime fused the two in a test, and if nothing else reads that input. A kernel's latency is that of its main operator,
the one with matrix work, else with the most traffic.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from opmark.core.kernels.fusion import ALPHA, FUSED, UNDECIDED, FusionMeasurement, pair_verdicts
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import kind_of

# The `Graph.mapping` of a graph that is cut already.
CUT = "fused"
# Pairs are tested with at most this many operators before the one that may join.
_LONGEST = 4
_ELEMENTWISE = {
    "relu": "relu",
    "clip": "relu6",
    "hard-swish": "hswish",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "leaky-relu": "leakyrelu",
    "gelu": "gelu",
}
_POOLS = {"max": "maxpool", "average": "avgpool", "global-average": "gap"}
_NORMS = {"batch": "bn", "layer": "layernorm"}
_MOVES = {"concat": "concat", "reshape": "reshape", "transpose": "transpose"}


def verdicts_of(rows: Iterable[FusionMeasurement]) -> dict[str, bool]:
    """Decide for every measured pair, by name, whether its operators become one kernel.

    The runtime's own graph decides where it is known. Else the clock does; where that is undecided, the median saving,
    as in nn-Meter.
    """
    return {
        one.pair: one.white_box == FUSED
        if one.white_box != UNDECIDED
        else one.black_box == FUSED or (one.black_box == UNDECIDED and one.saving is not None and one.saving > ALPHA)
        for one in pair_verdicts(rows)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CutGraph:
    """A graph of fused kernels; `main` is the place of each kernel's main operator in the original graph."""

    graph: Graph
    main: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """Operators that run as one kernel: `node` is that kernel, `chain` holds the possible names of each operator."""

    node: Node
    main: int
    chain: tuple[tuple[str, ...], ...]


def cut(graph: Graph, verdicts: Mapping[str, bool]) -> CutGraph:
    """Fuse the operators of `graph` by `verdicts` (pair → one kernel); a graph that is cut already stays as it is."""
    if graph.mapping == CUT or not any(verdicts.values()):
        return CutGraph(graph=graph, main=tuple(range(len(graph.nodes))))
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    readers.update(graph.outputs)
    clusters: list[_Cluster | None] = []
    maker: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        cluster = _Cluster(node=node, main=place, chain=() if node.free else (operator_names(node.kernel),))
        joined = _joined(cluster, clusters, maker, readers, verdicts)
        if joined is not None:
            cluster = _together(_known(clusters, joined), cluster)
            # the last operator's place: everything that either reads is made before
            clusters[joined] = None
        maker |= dict.fromkeys(node.outputs, len(clusters))
        clusters.append(cluster)
    kept = [one for one in clusters if one is not None]
    return CutGraph(
        graph=replace(graph, nodes=tuple(one.node for one in kept), mapping=CUT), main=tuple(one.main for one in kept)
    )


def _joined(
    cluster: _Cluster,
    clusters: list[_Cluster | None],
    maker: Mapping[str, int],
    readers: Mapping[str, int],
    verdicts: Mapping[str, bool],
) -> int | None:
    """The place of the kernel that an operator joins, the latest of those that it may; None if it stays alone."""
    if not cluster.chain or not cluster.chain[0]:
        return None
    makers = {maker[name] for name in cluster.node.inputs if name in maker and readers[name] == 1}
    for place in sorted(makers, reverse=True):
        before = clusters[place]
        if before is not None and len(before.node.outputs) == 1 and _fused(before.chain, cluster.chain[0], verdicts):
            return place
    return None


def _known(clusters: list[_Cluster | None], place: int) -> _Cluster:
    found = clusters[place]
    assert found is not None
    return found


def _fused(chain: tuple[tuple[str, ...], ...], names: tuple[str, ...], verdicts: Mapping[str, bool]) -> bool:
    """Decide by the pair with the longest first part that was measured; operators without a test stay apart."""
    if not chain or not all(chain):
        return False
    for length in range(min(len(chain), _LONGEST), 0, -1):
        for first in _spellings(chain[-length:]):
            for name in names:
                if f"{first}+{name}" in verdicts:
                    return verdicts[f"{first}+{name}"]
    return False


def _spellings(chain: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    """Every name of a chain, the most special first."""
    head, *rest = chain
    for name in head:
        if not rest:
            yield name
            continue
        for others in _spellings(tuple(rest)):
            yield f"{name}-{others}"


def _together(before: _Cluster, after: _Cluster) -> _Cluster:
    main = max((before, after), key=lambda one: _weight(one.node))
    passed = set(before.node.outputs)
    node = replace(
        main.node,
        inputs=(*before.node.inputs, *(name for name in after.node.inputs if name not in passed)),
        outputs=after.node.outputs,
        origins=(*before.node.origins, *after.node.origins),
    )
    return _Cluster(node=node, main=main.main, chain=(*before.chain, *after.chain))


def _weight(node: Node) -> tuple[bool, int]:
    return kind_of(node.kernel).matrix, node.work.flops + node.work.moved_bytes


def operator_names(kernel: Kernel) -> tuple[str, ...]:
    """The names under which tests of fusion know a kernel's operator, the most special first; empty for others."""
    params = kernel.params
    match kernel.kind:
        case "conv":
            return _convolution(params)
        case "conv-transpose":
            return ("convtrans",)
        case "gemm":
            return ("fc", "linear")
        case "matmul":
            return ("linear",) if params["weight"] else ("scores", "context")
        case "softmax":
            return ("softmax",)
        case "elementwise":
            return _elementwise(params)
    table = {"pool": _POOLS, "norm": _NORMS, "movement": _MOVES}.get(kernel.kind, {})
    name = table.get(str(params.get("op", "")), "")
    return (name,) if name else ()


def _convolution(params: Mapping[str, object]) -> tuple[str, ...]:
    sides = params["kernel"]
    assert isinstance(sides, tuple)
    if params["groups"] == params["channels_in"] != 1:
        return ("dwconv",)
    return ("conv1x1", "conv") if set(sides) == {1} else ("conv",)


def _elementwise(params: Mapping[str, object]) -> tuple[str, ...]:
    op, shapes, constant = str(params["op"]), params["shapes"], params["constant"]
    if op not in {"add", "mul"}:
        return (_ELEMENTWISE[op],) if op in _ELEMENTWISE else ()
    assert isinstance(shapes, tuple)
    if not constant:
        return (op,)
    small = min((shape for shape in shapes if isinstance(shape, tuple)), key=len)
    if op == "mul":
        return ("scale",) if not small or set(small) == {1} else ("mul",)
    return ("mask", "add") if len(small) > 1 else ("bias", "add")
