"""Read the `graph.txt` of msr-fiddle/pipedream (MIT licence): layers with times in ms, and sizes in bytes.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019. Like the
published optimiser, the importer drops `Input` sources and unused `__getitem__` sinks. Costs are seconds per sample on
identical machines.
"""

import math
import re
from pathlib import Path

from opmark.core.errors import ContentError, UsageError
from opmark.core.hardware.cluster import LIMIT, Cluster, Device, Link
from opmark.core.reading import read_text
from opmark.leaderboards.making.importer import ImportOptions, ProblemImporter
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import CostOrigin, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

MACHINES = 4
BYTES_PER_S = 1e9
NS_PER_MS = 1_000_000
# The published optimiser ignores memory unless asked.
UNLIMITED_BYTES = 2**60
FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_NODE = re.compile(r"(\S+) -- (.*) -- (forward_compute_time=.*)")
_EDGE = re.compile(r"\t(\S+) -- (\S+)")


class PipeDreamGraph(ProblemImporter):
    """A unit runs a layer's forward and backward pass; each layer's parameters are one weight."""

    summary = "PipeDream's graph.txt: costs in s, 4 machines at 1 GB/s unless told otherwise"

    def read(self, path: Path, options: ImportOptions) -> Problem:
        """The only objective is the time of the slowest stage (max-load)."""
        if options.objective != "max-load":
            raise UsageError(f"this format's objective is max-load, not {options.objective!r}")
        nodes, edges = _parse(path)
        after: dict[str, list[str]] = {name: [] for name in nodes}
        entered = {destination for _, destination in edges}
        dropped = {name for name in nodes if name not in entered and nodes[name][0].startswith("Input")}
        for source, destination in edges:
            after[source].append(destination)
        dropped |= {name for name in nodes if not after[name] and nodes[name][0].startswith("__getitem__")}
        kept = {name: fields for name, (_, fields) in nodes.items() if name not in dropped}
        units = tuple(
            Unit(
                name=name,
                exec_ns={"machine": (fields[0] + fields[1]) * NS_PER_MS},
                weights=(name,) if fields[3] else (),
                kind=nodes[name][0].partition("(")[0],
            )
            for name, fields in kept.items()
        )
        tensors = tuple(
            Tensor(
                name=f"{name}.out",
                size_bytes=round(fields[2]),
                producer=name,
                consumers=tuple(dict.fromkeys(reader for reader in after[name] if reader in kept)),
            )
            for name, fields in kept.items()
        )
        return checked(
            Problem(
                name=path.stem,
                cluster=_cluster(options),
                units=units,
                tensors=tensors,
                weights={name: round(fields[3]) for name, fields in kept.items() if fields[3]},
                objective="throughput",
                unit="s",
                memory_mode="sum",
                provenance=CostOrigin(model=path.stem, family="pipedream"),
                profile="pipedream_stage",
                contiguous=options.contiguous,
                replication=True,
            ),
            str(path),
        )


def _parse(path: Path) -> tuple[dict[str, tuple[str, tuple[float, ...]]], list[tuple[str, str]]]:
    """The nodes as (description, numbers in the order of `FIELDS`), and the edges."""
    nodes: dict[str, tuple[str, tuple[float, ...]]] = {}
    edges: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        node, edge = _NODE.fullmatch(line), _EDGE.fullmatch(line)
        if node:
            if node[1] in nodes:
                raise ContentError(f"the node {node[1]!r} appears twice", where=f"{path}:{number}")
            nodes[node[1]] = (node[2], _fields(node[3], f"{path}:{number}"))
        elif edge:
            edges.append((edge[1], edge[2]))
        elif line.strip():
            raise ContentError("neither a node nor an edge", where=f"{path}:{number}")
    unknown = sorted({name for pair in edges for name in pair} - nodes.keys())
    if unknown:
        raise ContentError(f"an edge names {unknown[0]!r}, which is not a node", where=str(path))
    if not nodes:
        raise ContentError("no node", where=str(path))
    return nodes, edges


def _fields(text: str, where: str) -> tuple[float, ...]:
    given = dict(part.partition("=")[::2] for part in text.split(", "))
    found = []
    for key in FIELDS:
        # A parallel layer states a list of sizes; its output is all of them.
        parts = given.get(key, "").strip("[]").split("; ")
        try:
            total = sum(float(part) for part in parts)
        except ValueError:
            total = math.nan
        if not 0 <= total < LIMIT:
            raise ContentError(f"expected {key}=number, not {given.get(key)!r}", where=where)
        found.append(total)
    return tuple(found)


def _cluster(options: ImportOptions) -> Cluster:
    count = MACHINES if options.devices is None else options.devices
    rate = BYTES_PER_S if options.bandwidth_bytes_per_s is None else options.bandwidth_bytes_per_s
    names = [f"machine{number}" for number in range(count)]
    devices = tuple(
        Device(name=name, type="machine", memory_bytes=UNLIMITED_BYTES, provenance="imported") for name in names
    )
    links = tuple(
        Link(source=a, destination=b, latency_ns=0, bandwidth_bytes_per_s=rate) for a in names for b in names if a != b
    )
    return Cluster(name="pipedream", devices=devices, links=links)


IMPORTER = PipeDreamGraph()
