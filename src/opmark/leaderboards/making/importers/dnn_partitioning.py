"""Read the JSON of msr-fiddle/dnn-partitioning (MIT licence): costs on a CPU and an accelerator, in ms.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020. An edge's cost is
the time to move its source's output between an accelerator and main memory, and the accelerator pays it. So it becomes
the tensor's boundary cost there, and links cost nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, Strict

from opmark.core.errors import ContentError, UsageError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.reading import read_json
from opmark.core.schema import convert
from opmark.leaderboards.making.importer import DEVICES_AT_MOST, ImportOptions, ProblemImporter
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import CostOrigin, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

OBJECTIVES = {"max-load": ("throughput", "maxload_serial"), "latency": ("latency", "atomic_calls")}
NS_PER_MS = 1_000_000
# Main memory has no limit in the format, and a link adds nothing to the cost of an edge.
UNLIMITED_BYTES = 2**60
UNLIMITED_BYTES_PER_S = 1e18
_Number = Annotated[float, Strict(), Field(ge=0, lt=2**53)]
_Whole = Annotated[int, Strict(), Field(ge=0, lt=2**53)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A row of `nodes`; latencies in ms."""

    __pydantic_config__: ClassVar = ConfigDict(extra="ignore", allow_inf_nan=False)
    id: _Whole
    cpu_ms: Annotated[_Number, Field(alias="cpuLatency")]
    accelerator_ms: Annotated[_Number | None, Field(alias="fpgaLatency")] = None
    size_bytes: Annotated[_Number, Field(alias="size")] = 0.0
    supported: Annotated[bool, Strict(strict=False), Field(alias="supportedOnFpga")] = True
    backward: Annotated[bool, Strict(strict=False), Field(alias="isBackwardNode")] = False
    colour: Annotated[int | str | None, Field(alias="colorClass")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    """A row of `edges`; the cost is in ms."""

    __pydantic_config__: ClassVar = ConfigDict(extra="ignore", allow_inf_nan=False)
    source: Annotated[_Whole, Field(alias="sourceId")]
    destination: Annotated[_Whole, Field(alias="destId")]
    cost: _Number


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The whole file; the accelerators' memory is in bytes."""

    __pydantic_config__: ClassVar = ConfigDict(extra="ignore", allow_inf_nan=False)
    nodes: tuple[_Node, ...]
    edges: tuple[_Edge, ...]
    memory_bytes: Annotated[_Number, Field(alias="maxSizePerFPGA")]
    accelerators: Annotated[_Number, Field(alias="maxFPGAs")]
    hosts: Annotated[_Number, Field(alias="maxCPUs")]


class DnnPartitioning(ProblemImporter):
    """Units are called after node ids, colour classes are colocation classes, sizes are weights."""

    summary = "dnn-partitioning's JSON: costs in ms"

    def read(self, path: Path, options: ImportOptions) -> Problem:
        """The objective is max load or latency, contiguous or not; `devices` replaces the number of accelerators."""
        if options.objective not in OBJECTIVES:
            raise UsageError(f"objective must be one of {', '.join(OBJECTIVES)}, not {options.objective!r}")
        content = convert(read_json(path), _File, where=str(path))
        objective, profile = OBJECTIVES[options.objective]
        colours = Counter(node.colour for node in content.nodes)
        units = tuple(
            _unit(node, f"{path}: nodes.{index}", shared=node.colour is not None and colours[node.colour] > 1)
            for index, node in enumerate(content.nodes)
        )
        return checked(
            Problem(
                name=path.stem,
                cluster=_cluster(content, options, str(path)),
                units=units,
                tensors=_tensors(content.edges, {unit.name: unit for unit in units}, path),
                weights={str(node.id): ceil(node.size_bytes) for node in content.nodes if node.size_bytes},
                objective=objective,
                unit="ms",
                memory_mode="sum",
                provenance=CostOrigin(model=path.stem, family="dnn-partitioning"),
                profile=profile,
                contiguous=options.contiguous,
            ),
            str(path),
        )


def _cluster(content: _File, options: ImportOptions, where: str) -> Cluster:
    accelerators = int(content.accelerators) if options.devices is None else options.devices
    if max(accelerators, content.hosts) > DEVICES_AT_MOST:
        raise ContentError(f"maxFPGAs and maxCPUs: must be at most {DEVICES_AT_MOST:,}", where=where)
    devices = [
        Device(name=f"cpu{number}", type="cpu", memory_bytes=UNLIMITED_BYTES, provenance="imported")
        for number in range(max(1, int(content.hosts)))
    ]
    devices += [
        Device(name=f"acc{number}", type="accelerator", memory_bytes=int(content.memory_bytes), provenance="imported")
        for number in range(accelerators)
    ]
    links = tuple(
        Link(source=a.name, destination=b.name, latency_ns=0, bandwidth_bytes_per_s=UNLIMITED_BYTES_PER_S)
        for a in devices
        for b in devices
        if a != b
    )
    return Cluster(name="dnn-partitioning", devices=tuple(devices), links=links, host="cpu0")


def _unit(node: _Node, where: str, *, shared: bool) -> Unit:
    times = {"cpu": node.cpu_ms * NS_PER_MS}
    if node.supported:
        if node.accelerator_ms is None:
            raise ContentError("missing", where=f"{where}.fpgaLatency")
        times["accelerator"] = node.accelerator_ms * NS_PER_MS
    name = str(node.id)
    return Unit(
        name=name,
        exec_ns=times,
        weights=(name,) if node.size_bytes else (),
        colocation=f"colour {node.colour}" if shared else "",
        phase="backward" if node.backward else "forward",
    )


def _tensors(edges: Sequence[_Edge], units: dict[str, Unit], path: Path) -> tuple[Tensor, ...]:
    costs: dict[str, float] = {}
    readers: dict[str, dict[str, None]] = {}
    for index, edge in enumerate(edges):
        where = f"{path}: edges.{index}"
        source, destination = str(edge.source), str(edge.destination)
        for name in (source, destination):
            if name not in units:
                raise ContentError(f"no node has the id {name}", where=where)
        if abs(costs.setdefault(source, edge.cost) - edge.cost) > 1e-6:
            raise ContentError(f"node {source} has two different costs, {costs[source]} and {edge.cost}", where=where)
        if units[source].phase == "backward" and units[destination].phase == "forward":
            raise ContentError(f"backward node {source} cannot precede forward node {destination}", where=where)
        readers.setdefault(source, {})[destination] = None
    return tuple(
        Tensor(
            name=f"{source}.out",
            size_bytes=0,
            producer=source,
            consumers=tuple(names),
            boundary_ns={"accelerator": costs[source] * NS_PER_MS},
        )
        for source, names in readers.items()
    )


IMPORTER = DnnPartitioning()
