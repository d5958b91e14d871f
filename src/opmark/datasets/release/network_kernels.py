"""The kernels that each measured network consists of, as a table that pandas can join with `kernels`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opmark.core.canonical import canonical_json
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.kernels.graph import Graph, Node
from opmark.core.measurements.measurement import NetworkMeasurement

if TYPE_CHECKING:
    import pyarrow

NETWORK_KERNELS = "network_kernels"
# Column: its type in Arrow, and its meaning.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "target": ("string", "the target that ran the network"),
    "network": ("string", "model name, as in networks"),
    "batch": ("int64", "batch size"),
    "graph_id": ("string", "hash of the kernel graph, as in networks"),
    "kind": ("string", "kernel family"),
    "parameters": ("string", "canonical JSON of everything that changes what runs, as in kernels"),
    "kernel_key": ("string", "hash of kind and parameters, as in kernels"),
    "phase": ("string", "forward, backward or update"),
    "view": ("bool", "a node that moves nothing: it costs a call, and no kernel runs"),
    "calls": ("int64", "nodes of the graph with this kernel"),
    "flops": ("int64", "floating-point operations of one call"),
    "moved_bytes": ("int64", "bytes read and written by one call"),
    "weight_bytes": ("int64", "the constant part of the bytes read"),
}
GraphFinder = Callable[[Iterable[NetworkMeasurement], str], Mapping[str, Graph]]


def network_kernels(networks: Iterable[NetworkMeasurement], find: GraphFinder) -> "pyarrow.Table":
    """Make one row per network, distinct kernel and phase; networks whose graph `find` lacks are left out.

    `find` maps the graph ids of networks on a target to their graphs. Raises `NothingSelectedError` without a graph.
    """
    import pyarrow

    by_target: dict[str, list[NetworkMeasurement]] = {}
    for one in networks:
        by_target.setdefault(one.target, []).append(one)
    rows: list[dict[str, Any]] = []
    for target, own in sorted(by_target.items()):
        graphs = find(own, target)
        seen: dict[tuple[str, int, str], NetworkMeasurement] = {}
        for one in own:
            seen.setdefault((one.network, one.batch, one.graph_id), one)
        for _, one in sorted(seen.items()):
            graph = graphs.get(one.graph_id)
            rows += [] if graph is None else _rows(one, graph)
    if not rows:
        raise NothingSelectedError(
            "no measured network has a graph here", hint="networks of transformers need: pip install 'opmark[models]'"
        )
    return pyarrow.Table.from_pylist(rows, schema=_schema())


def checked_network_kernels(found: "pyarrow.Table", where: str) -> "pyarrow.Table":
    """The stored table `found`. Raises `ContentError` naming a column that is missing, strange, or of another type."""
    schema = _schema()
    for name in (*schema.names, *found.column_names):
        if name not in found.column_names or name not in schema.names:
            missing = "the column is missing" if name in schema.names else "unknown column"
            raise ContentError(missing, where=f"{where}: {name}")
        column, wanted = found.column(name), schema.field(name).type
        if column.type != wanted:
            raise ContentError(f"holds {column.type}, expected {wanted}", where=f"{where}: {name}")
        if column.null_count:
            raise ContentError("has no value", where=f"{where}: {name}")
    return found.select(schema.names)


def _schema() -> "pyarrow.Schema":
    import pyarrow

    types = {"string": pyarrow.string(), "int64": pyarrow.int64(), "bool": pyarrow.bool_()}
    return pyarrow.schema([pyarrow.field(name, types[kind]) for name, (kind, _) in COLUMNS.items()])


def _rows(one: NetworkMeasurement, graph: Graph) -> list[dict[str, Any]]:
    first: dict[tuple[str, str, bool], Node] = {}
    calls: Counter[tuple[str, str, bool]] = Counter()
    for node in graph.nodes:
        place = (node.kernel.key, node.phase, node.free)
        first.setdefault(place, node)
        calls[place] += 1
    return [
        {
            "target": one.target,
            "network": one.network,
            "batch": one.batch,
            "graph_id": one.graph_id,
            "kind": node.kernel.kind,
            "parameters": canonical_json(node.kernel.params),
            "kernel_key": key,
            "phase": phase,
            "view": view,
            "calls": calls[key, phase, view],
            "flops": node.work.flops,
            "moved_bytes": node.work.moved_bytes,
            "weight_bytes": node.work.weight_bytes,
        }
        for (key, phase, view), node in first.items()
    ]
