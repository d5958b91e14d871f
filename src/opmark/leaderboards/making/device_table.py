"""Load a device type from its file: memory, price, provenance, and the source of its kernel costs.

Costs have one of four sources. Measured: `bundle` names predictors in this workspace. Imported: `rooflines` were
fitted to latencies that others published. Analytic: `peak_flops_per_s` and `bandwidth_bytes_per_s` come from a data
sheet, and an efficiency table gives the share of them that each kind of kernel reaches. Layers: `layers` names a GPU
of a folder of `leaderboards/layers`, whose models were measured layer by layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opmark.core.errors import ContentError, UnknownNameError
from opmark.core.hardware.cluster import PROVENANCES, Device
from opmark.core.registry import unknown_name
from opmark.core.schema import load, load_checked
from opmark.core.slug import SlugOrEmpty, SlugPairOrEmpty
from opmark.leaderboards.making.rooflines import ANY, KindRoofline, RooflineCosts

SCHEMA = 1
FOLDER = "devices"
_RATE_LIMIT = 1e21
_RANGES = (
    ("memory_bytes", 1, 2**62),
    ("price_per_hour", 0, 1e6),
    ("bandwidth_bytes_per_s", 0, 1e18),
    ("launch_ns", 0, 1e12),
)
EFFICIENCIES = "efficiency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The shares of a data sheet's FLOP/s and bytes/s that a kind reaches, each in (0, 1].

    `half_width` is that of `KindRoofline`.
    """

    compute: float
    memory: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares by kind (`*` for all others), and the source of these figures."""

    source: str
    kinds: Mapping[str, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTable:
    """One device type; the name of its file is the type.

    `runtime` decides which kernels a network has on it. `source` names the public source of the figures. `launch_ns`
    is added to each kernel of an analytic device. `layers` is a folder and a GPU of it, such as `sailor/A100-40`.
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
    efficiency: SlugOrEmpty = ""
    layers: SlugPairOrEmpty = ""

    def problems(self) -> list[str]:
        """List the faults of this table, one sentence each."""
        found = []
        if self.provenance not in PROVENANCES:
            found.append(f"provenance: one of {', '.join(PROVENANCES)}, not {self.provenance!r}")
        if not self.source.strip():
            found.append("source: must name where the figures come from")
        for name, least, limit in _RANGES:
            if not least <= getattr(self, name) < limit:
                sign = "positive" if least else "0 or more"
                found.append(f"{name}: must be {sign} and below {limit:.0e}, not {getattr(self, name)}")
        ways = {
            "bundle": self.bundle,
            "rooflines": self.rooflines,
            "peak_flops_per_s": self.peak_flops_per_s,
            "layers": self.layers,
        }
        given = [name for name, value in ways.items() if value]
        if len(given) != 1:
            found.append(f"exactly one of {', '.join(ways)} is needed, not {len(given)}")
        if self.rooflines and ANY not in self.rooflines:
            found.append(f"rooflines: one for all other kinds is needed, called {ANY!r}")
        if self.peak_flops_per_s and not (self.bandwidth_bytes_per_s > 0 and self.efficiency):
            found.append("peak_flops_per_s: needs bandwidth_bytes_per_s and efficiency beside it")
        if any(not 0 < peak < _RATE_LIMIT for peak in self.peak_flops_per_s.values()):
            found.append(f"peak_flops_per_s: must be positive and below {_RATE_LIMIT:.0e}")
        return found

    def target(self, name: str) -> str:
        """The target name that a device of type `name` has in a problem."""
        return self.bundle or f"{name}/{self.runtime}"

    def device(self, name: str, type_name: str) -> Device:
        """Make a device of this type with the given name."""
        return Device(
            name=name,
            type=type_name,
            memory_bytes=self.memory_bytes,
            target=self.target(type_name),
            price_per_hour=self.price_per_hour,
            provenance=self.provenance,
        )


def load_table(leaderboards: Path, name: str, *, named_in: str = "") -> DeviceTable:
    """Load and check the device type `name`, which the file `named_in` names.

    Raises `UnknownNameError` naming that file, or `ContentError` naming the type's.
    """
    path = leaderboards / FOLDER / f"{name}.yaml"
    if not path.is_file():
        error = unknown_name("device type", name, table_names(leaderboards))
        raise UnknownNameError(error.message, where=named_in, hint=error.hint)
    return load_checked(path, DeviceTable, schema=SCHEMA)


def table_names(leaderboards: Path) -> tuple[str, ...]:
    """List the device types of a `leaderboards/` folder."""
    return tuple(sorted(path.stem for path in (leaderboards / FOLDER).glob("*.yaml")))


def costs_of(table: DeviceTable, leaderboards: Path) -> RooflineCosts:
    """The cost model of an imported or analytic device type.

    Raises `ContentError` for a device type that is measured or has layers only, or for a wrong efficiency file.
    """
    if table.bundle:
        raise ContentError(f"the costs of {table.title} are in its predictors", where=table.bundle)
    if table.layers:
        raise ContentError(f"{table.title} has costs of whole layers, not of kernels", where=f"layers: {table.layers}")
    if table.rooflines:
        return RooflineCosts(rooflines=table.rooflines)
    path = leaderboards / FOLDER / EFFICIENCIES / f"{table.efficiency}.yaml"
    efficiency = load(path, Efficiency, schema=SCHEMA)
    if ANY not in efficiency.kinds:
        raise ContentError(f"a share for all other kinds is needed, called {ANY!r}", where=f"{path}: kinds")
    for kind, share in efficiency.kinds.items():
        if not (0 < share.compute <= 1 and 0 < share.memory <= 1 and share.half_width >= 0):
            raise ContentError(
                "compute and memory must be in (0, 1], half_width not negative", where=f"{path}: kinds.{kind}"
            )
    return RooflineCosts(rooflines=_rooflines(table, efficiency))


def _rooflines(table: DeviceTable, efficiency: Efficiency) -> dict[str, KindRoofline]:
    """Rooflines by kind, and by `kind:dtype` for each other element type with its own peak."""
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
