"""A type of device as a file: what it is, where that is known from, and what kernels cost on it.

Costs come from one of three places. `bundle` names predictors that this workspace has (measured). `rooflines` were
fitted to latencies that others published (imported). `peak_flops_per_s` and `bandwidth_bytes_per_s` are a data sheet's,
of which each kind of kernel reaches the share that an efficiency table says (analytic).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.cluster import PROVENANCES, Device
from opmark.core.errors import ContentError
from opmark.core.registry import unknown_name
from opmark.core.schema import load

if TYPE_CHECKING:
    from opmark.leaderboards.making.units import Costs

SCHEMA = 1
FOLDER = "devices"
EFFICIENCIES = "efficiency"
ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRoofline:
    """ns per FLOP, per byte and per call of one kind; predictions lie within a factor of e^±`half_width`."""

    ns_per_flop: float
    ns_per_byte: float
    constant_ns: float
    least_ns: float = 1.0
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Which part of a data sheet's FLOP/s and bytes/s a kind reaches, in (0, 1]; `half_width` as above."""

    compute: float
    memory: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares by kind, `*` for all others, and what they were measured on."""

    source: str
    kinds: Mapping[str, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTable:
    """One type of device; the file's name is the type.

    `runtime` decides which kernels a network has here, `source` says in public terms where the numbers are from.
    Sizes in bytes, rates per s, `launch_ns` per kernel of an analytic device.
    """

    title: str
    provenance: str
    source: str
    runtime: str
    memory_bytes: int
    price_per_hour: float = 0.0
    bundle: str = ""
    rooflines: Mapping[str, KindRoofline] = field(default_factory=dict)
    peak_flops_per_s: Mapping[str, float] = field(default_factory=dict)
    bandwidth_bytes_per_s: float = 0.0
    launch_ns: float = 0.0
    efficiency: str = ""

    def problems(self) -> list[str]:
        """Everything that is wrong with this table, one sentence each."""
        found = []
        if self.provenance not in PROVENANCES:
            found.append(f"provenance: one of {', '.join(PROVENANCES)}, not {self.provenance!r}")
        if not self.source.strip():
            found.append("source: say where the numbers are from")
        if self.memory_bytes <= 0:
            found.append(f"memory_bytes: must be positive, not {self.memory_bytes}")
        ways = {"bundle": self.bundle, "rooflines": self.rooflines, "peak_flops_per_s": self.peak_flops_per_s}
        given = [name for name, value in ways.items() if value]
        if len(given) != 1:
            found.append(f"exactly one of {', '.join(ways)} is needed, not {len(given)}")
        if self.rooflines and ANY not in self.rooflines:
            found.append(f"rooflines: one for all other kinds is needed, called {ANY!r}")
        if self.peak_flops_per_s and not (self.bandwidth_bytes_per_s > 0 and self.efficiency):
            found.append("peak_flops_per_s: needs bandwidth_bytes_per_s and efficiency beside it")
        if any(not peak > 0 for peak in self.peak_flops_per_s.values()) or self.launch_ns < 0:
            found.append("peak_flops_per_s must be positive and launch_ns not negative")
        return found

    def target(self, name: str) -> str:
        """What a device of type `name` calls its target in a problem."""
        return self.bundle or f"{name}/{self.runtime}"

    def device(self, name: str, type_name: str) -> Device:
        """A device of this type, called `name`."""
        return Device(
            name=name,
            type=type_name,
            memory_bytes=self.memory_bytes,
            target=self.target(type_name),
            price_per_hour=self.price_per_hour,
            provenance=self.provenance,
        )


def load_table(leaderboards: Path, name: str) -> DeviceTable:
    """The checked device type called `name`. Raises `UnknownNameError`, or `ContentError` naming the file."""
    path = leaderboards / FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise unknown_name("device type", name, table_names(leaderboards))
    table = load(path, DeviceTable, schema=SCHEMA)
    if found := table.problems():
        raise ContentError("; ".join(found), where=str(path))
    return table


def table_names(leaderboards: Path) -> tuple[str, ...]:
    """Every device type of a `leaderboards/` folder."""
    return tuple(sorted(path.stem for path in (leaderboards / FOLDER).glob("*.yaml")))


def costs_of(table: DeviceTable, leaderboards: Path) -> "Costs":
    """The cost model of an imported or analytic device. Raises `ContentError` for a measured one or a wrong file."""
    from opmark.leaderboards.making.rooflines import TableCosts

    if table.bundle:
        raise ContentError(f"the costs of {table.title} are in its predictors", where=table.bundle)
    if table.rooflines:
        return TableCosts(rooflines=table.rooflines)
    path = leaderboards / FOLDER / EFFICIENCIES / f"{table.efficiency}.yaml"
    efficiency = load(path, Efficiency, schema=SCHEMA)
    if ANY not in efficiency.kinds:
        raise ContentError(f"a share for all other kinds is needed, called {ANY!r}", where=f"{path}: kinds")
    for kind, share in efficiency.kinds.items():
        if not (0 < share.compute <= 1 and 0 < share.memory <= 1 and share.half_width >= 0):
            raise ContentError(
                "compute and memory must be in (0, 1], half_width not negative", where=f"{path}: kinds.{kind}"
            )
    return TableCosts(rooflines=_rooflines(table, efficiency))


def _rooflines(table: DeviceTable, efficiency: Efficiency) -> dict[str, KindRoofline]:
    """By kind, and by `kind:dtype` for each element type with a peak of its own."""
    return {
        f"{kind}:{dtype}" if dtype != "float32" else kind: KindRoofline(
            ns_per_flop=1e9 / (peak * share.compute),
            ns_per_byte=1e9 / (table.bandwidth_bytes_per_s * share.memory),
            constant_ns=table.launch_ns,
            half_width=share.half_width,
        )
        for kind, share in efficiency.kinds.items()
        for dtype, peak in table.peak_flops_per_s.items()
    }
