"""The JSON of msr-fiddle/dnn-partitioning (MIT licence): nodes with CPU and accelerator times in ms, edges with costs.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020. An edge's cost is
the time to move its source's output between an accelerator and main memory, paid by the accelerator; so it becomes
the tensor's layout cost there, and links cost nothing.
"""

from collections import Counter
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any

from opmark.core.cluster import Cluster, Device, Link
from opmark.core.errors import ContentError, UsageError
from opmark.core.files import read_json
from opmark.leaderboards.making.importer import Importer, Wish
from opmark.leaderboards.problem.problem import Problem, Provenance, Tensor, Unit

OBJECTIVES = {"max-load": ("throughput", "maxload_serial"), "latency": ("latency", "atomic_calls")}
NS_PER_MS = 1_000_000
# Main memory has no limit in the format, and links no cost beyond an edge's own.
UNLIMITED_BYTES = 2**60
UNLIMITED_BYTES_PER_S = 1e18


class DnnPartitioning(Importer):
    """Units are called after node ids, colour classes are colocation classes, sizes are weights."""

    summary = "dnn-partitioning's JSON: costs in ms"

    def read(self, path: Path, wish: Wish) -> Problem:
        """Max load or latency, contiguous or not. `devices` replaces the number of accelerators."""
        if wish.objective not in OBJECTIVES:
            raise UsageError(f"objective must be one of {', '.join(OBJECTIVES)}, not {wish.objective!r}")
        content = read_json(path)
        if not isinstance(content, dict):
            raise ContentError("expected a mapping at the top", where=str(path))
        nodes, edges = _rows(content, "nodes", path), _rows(content, "edges", path)
        objective, profile = OBJECTIVES[wish.objective]
        cluster = _cluster(content, path, wish)
        colours = Counter(str(node["colorClass"]) for node in nodes if node.get("colorClass") is not None)
        units = tuple(_unit(node, f"{path}: nodes.{index}", colours) for index, node in enumerate(nodes))
        sizes = {
            str(node["id"]): ceil(_number(node, "size", f"{path}: nodes.{index}", 0.0))
            for index, node in enumerate(nodes)
        }
        return Problem(
            name=path.stem,
            cluster=cluster,
            units=units,
            tensors=_tensors(edges, {unit.name: unit for unit in units}, path),
            weights={name: size for name, size in sizes.items() if size},
            objective=objective,
            unit="ms",
            memory_mode="sum",
            provenance=Provenance(model=path.stem, family="dnn-partitioning"),
            profile=profile,
            contiguous=wish.contiguous,
        ).checked(str(path))


def _cluster(content: Mapping[str, Any], path: Path, wish: Wish) -> Cluster:
    where = str(path)
    memory = int(_number(content, "maxSizePerFPGA", where))
    accelerators = int(_number(content, "maxFPGAs", where)) if wish.devices is None else wish.devices
    hosts = max(1, int(_number(content, "maxCPUs", where)))
    devices = [
        Device(name=f"cpu{number}", type="cpu", memory_bytes=UNLIMITED_BYTES, provenance="imported")
        for number in range(hosts)
    ]
    devices += [
        Device(name=f"acc{number}", type="accelerator", memory_bytes=memory, provenance="imported")
        for number in range(accelerators)
    ]
    links = tuple(
        Link(source=a.name, destination=b.name, latency_ns=0, bandwidth_bytes_per_s=UNLIMITED_BYTES_PER_S)
        for a in devices
        for b in devices
        if a != b
    )
    return Cluster(name="dnn-partitioning", devices=tuple(devices), links=links, host="cpu0")


def _unit(node: Mapping[str, Any], where: str, colours: Counter[str]) -> Unit:
    times = {"cpu": _number(node, "cpuLatency", where) * NS_PER_MS}
    if node.get("supportedOnFpga", True):
        times["accelerator"] = _number(node, "fpgaLatency", where) * NS_PER_MS
    name, colour = str(node["id"]), str(node.get("colorClass"))
    return Unit(
        name=name,
        exec_ns=times,
        weights=(name,) if ceil(_number(node, "size", where, 0.0)) else (),
        colocation=f"colour {colour}" if colours[colour] > 1 else "",
        phase="backward" if node.get("isBackwardNode", False) else "forward",
    )


def _tensors(edges: list[Mapping[str, Any]], units: Mapping[str, Unit], path: Path) -> tuple[Tensor, ...]:
    costs: dict[str, float] = {}
    readers: dict[str, dict[str, None]] = {}
    for index, edge in enumerate(edges):
        where = f"{path}: edges.{index}"
        cost = _number(edge, "cost", where)
        source, destination = (str(int(_number(edge, key, where))) for key in ("sourceId", "destId"))
        for name in (source, destination):
            if name not in units:
                raise ContentError(f"no node has the id {name}", where=where)
        if abs(costs.setdefault(source, cost) - cost) > 1e-6:
            raise ContentError(f"node {source} has two different costs, {costs[source]} and {cost}", where=where)
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


def _rows(content: Mapping[str, Any], key: str, path: Path) -> list[Mapping[str, Any]]:
    found = content.get(key)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ContentError("expected a list of mappings", where=f"{path}: {key}")
    for index, item in enumerate(found):
        if key == "nodes":
            _number(item, "id", f"{path}: {key}.{index}")
    return found


def _number(item: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = item.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        found = "missing" if value is None else f"must be a number from 0 to 2^53, not {value!r}"
        raise ContentError(found, where=f"{where}.{key}" if ": " in where else f"{where}: {key}")
    return value


IMPORTER = DnnPartitioning()
