"""Load a cluster file, which names device types and link types that have files of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster, Link
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.core.slug import Slug
from opmark.leaderboards.making.device_table import DeviceTable, load_table

SCHEMA = 1
FOLDER = "clusters"
LINKS = "links.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkType:
    """One direction of a link, and the source of its figures."""

    latency_ns: int
    bandwidth_bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTypes:
    """The content of `links.yaml`."""

    links: Mapping[str, LinkType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable:
    """A link in both directions between two devices.

    Cables with the same `port` share it; a `half_duplex` cable also shares it between its two directions.
    """

    between: tuple[str, str]
    type: str
    port: str = ""
    half_duplex: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The content of a cluster file. `devices` maps names to device types; the first device is the host."""

    title: str
    devices: Mapping[str, Slug]
    links: tuple[Cable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCluster:
    """A cluster with the table of each of its device types."""

    cluster: Cluster
    tables: Mapping[str, DeviceTable]

    def with_memory(self, memory_bytes: Mapping[str, int]) -> "PlannedCluster":
        """The same cluster with other memory sizes, by device name."""
        devices = tuple(
            replace(device, memory_bytes=memory_bytes.get(device.name, device.memory_bytes))
            for device in self.cluster.devices
        )
        return replace(self, cluster=replace(self.cluster, devices=devices))


def load_plan(leaderboards: Path, name: str) -> PlannedCluster:
    """The checked cluster called `name`. Raises `UnknownNameError`, or `ContentError` naming file and key."""
    path = leaderboards / FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise unknown_name("cluster", name, tuple(sorted(item.stem for item in path.parent.glob("*.yaml"))))
    plan = load(path, ClusterPlan, schema=SCHEMA)
    kinds = load(leaderboards / FOLDER / LINKS, LinkTypes, schema=SCHEMA).links
    tables = {
        kind: load_table(leaderboards, kind, named_in=f"{path}: devices.{device}")
        for device, kind in plan.devices.items()
    }
    links: list[Link] = []
    for cable in plan.links:
        if cable.type not in kinds:
            raise ContentError(
                f"no link type is called {cable.type!r}",
                where=f"{path}: links",
                hint=f"known: {', '.join(kinds)}",
            )
        links += _both_ways(cable, kinds[cable.type])
    devices = tuple(tables[kind].device(device, kind) for device, kind in plan.devices.items())
    cluster = Cluster(name=name, devices=devices, links=tuple(links), host=devices[0].name if devices else "")
    return PlannedCluster(cluster=cluster.checked(str(path)), tables=tables)


def _both_ways(cable: Cable, kind: LinkType) -> tuple[Link, Link]:
    one, other = cable.between
    there, back = (cable.port, cable.port) if cable.half_duplex or not cable.port else _lanes(cable.port)
    made = [
        Link(
            source=source,
            destination=destination,
            latency_ns=kind.latency_ns,
            bandwidth_bytes_per_s=kind.bandwidth_bytes_per_s,
            port=port,
        )
        for source, destination, port in ((one, other, there), (other, one, back))
    ]
    return made[0], made[1]


def _lanes(port: str) -> tuple[str, str]:
    return f"{port}>", f"{port}<"
