"""Catalogues: the device types that can be rented, their prices, and the links between them."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.core.slug import Slug, SlugOrEmpty
from opmark.core.units import counted
from opmark.leaderboards.making.cluster_plan import FOLDER as CLUSTERS
from opmark.leaderboards.making.cluster_plan import LINKS, LinkType, LinkTypes
from opmark.leaderboards.making.device_table import DeviceTable, load_table
from opmark.leaderboards.plans.bandwidths import Bandwidth, Bandwidths, load_bandwidths
from opmark.leaderboards.plans.layer_problem import link_points
from opmark.leaderboards.provisioning.fleet import Fleet

SCHEMA = 1
FOLDER = "catalogues"
LAYERS, NETWORKS = "layers", "networks"
SAME_HOST, SAME_ZONE, ACROSS_ZONES = "same-host", "same-zone", "across-zones"
# No catalogue offers more devices of one type, so that a fleet stays a fleet.
AVAILABLE_AT_MOST = 1024
PRICE_LIMIT = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one device per hour; `date` is the day on which `source` said so."""

    per_hour: float
    currency: str
    date: datetime.date
    source: str

    def problems(self) -> list[str]:
        """List the faults of this price, one sentence each."""
        found = []
        if not 0 < self.per_hour < PRICE_LIMIT:
            found.append(f"price.per_hour: must be positive and below {PRICE_LIMIT:,}, not {self.per_hour:g}")
        found += [
            f"price.{name}: must not be empty"
            for name, value in (("currency", self.currency), ("source", self.source))
            if not value.strip()
        ]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A device type that can be rented; `device` names its file in `leaderboards/devices`.

    A host holds up to `per_host` devices of the type and no others. `same_host` names the link type between them, if
    it is not the catalogue's own.
    """

    device: Slug
    price: Price
    available: int
    per_host: int = 1
    zone: str = "a"
    same_host: str = ""

    def problems(self) -> list[str]:
        """List the faults of this offer, one sentence each."""
        found = self.price.problems()
        if not 1 <= self.available <= AVAILABLE_AT_MOST:
            found.append(f"available: from 1 to {AVAILABLE_AT_MOST:,}, not {self.available}")
        if not 1 <= self.per_host <= AVAILABLE_AT_MOST:
            found.append(f"per_host: from 1 to {AVAILABLE_AT_MOST:,}, not {self.per_host}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueFile:
    """The content of a catalogue file.

    `links` maps `same-host`, `same-zone` and `across-zones` to link types of `leaderboards/clusters/links.yaml`. Or
    `bandwidths` names a folder of `leaderboards/layers`: its measured bandwidths, functions of a message's size, link
    types with layers by their GPU and zone.
    """

    title: str
    devices: Mapping[str, Offer]
    links: Mapping[str, str] = field(default_factory=dict)
    bandwidths: SlugOrEmpty = ""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """A checked catalogue with the table of each device type, and their links: link types or measured bandwidths."""

    name: str
    title: str
    offers: Mapping[str, Offer]
    tables: Mapping[str, DeviceTable]
    links: Mapping[str, LinkType]
    same_host: Mapping[str, LinkType] = field(default_factory=dict)
    bandwidths: Bandwidths | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The device types, in the order of the file."""
        return tuple(self.offers)

    @cached_property
    def currency(self) -> str:
        """The currency of all prices."""
        return next(iter(self.offers.values())).price.currency

    def price_per_hour(self, fleet: Fleet) -> float:
        """The price of a fleet per hour."""
        return sum(count * self.offers[name].price.per_hour for name, count in fleet.items())

    def only(self, types: Sequence[str]) -> "Catalogue":
        """The same catalogue with only these device types."""
        kept = {name: self.offers[name] for name in types}
        tables = {name: self.tables[name] for name in kept}
        same_host = {name: link for name, link in self.same_host.items() if name in kept}
        return replace(self, offers=kept, tables=tables, same_host=same_host)

    def cluster(self, fleet: Fleet) -> Cluster:
        """The rented devices as a cluster; the first one holds inputs and outputs.

        Devices of one type fill a host before the next one. Every host has one network port in each direction, which
        all of its transfers to other hosts share.
        """
        devices: list[Device] = []
        host_of: dict[str, tuple[str, int]] = {}
        for kind, count in fleet.items():
            for number in range(count):
                name = f"{kind}-{number}"
                table = self.tables[kind]
                devices.append(
                    Device(
                        name=name,
                        type=kind,
                        memory_bytes=table.memory_bytes,
                        target=table.target(self.offers[kind].device),
                        price_per_hour=self.offers[kind].price.per_hour,
                        provenance=table.provenance,
                    )
                )
                host_of[name] = (kind, number // self.offers[kind].per_host)
        links = tuple(self._link(a, b, host_of) for a in devices for b in devices if a.name != b.name)
        cluster = Cluster(name=fleet.title, devices=tuple(devices), links=links, host=devices[0].name)
        return cluster.checked(self.name)

    def _link(self, source: Device, destination: Device, host_of: Mapping[str, tuple[str, int]]) -> Link:
        here, there = host_of[source.name], host_of[destination.name]
        port = "" if here == there else f"{here[0]}/{here[1]}>"
        if self.bandwidths is not None:
            points, beyond = link_points(self._bandwidth(source.type, destination.type, within=here == there))
            return Link(
                source=source.name,
                destination=destination.name,
                latency_ns=points[0][1],
                bandwidth_bytes_per_s=beyond,
                port=port,
                points=points,
            )
        kind = self.same_host[source.type] if here == there else self.links[self._place(source.type, destination.type)]
        return Link(
            source=source.name,
            destination=destination.name,
            latency_ns=kind.latency_ns,
            bandwidth_bytes_per_s=kind.bandwidth_bytes_per_s,
            port=port,
        )

    def _place(self, one: str, other: str) -> str:
        return SAME_ZONE if self.offers[one].zone == self.offers[other].zone else ACROSS_ZONES

    def _bandwidth(self, one: str, other: str, *, within: bool) -> Bandwidth:
        """The measured bandwidth between two types, or within a host. Raises `ContentError` where there is none."""
        assert self.bandwidths is not None
        gpus = [self.tables[kind].layers.rpartition("/")[2] for kind in (one, other)]
        if within:
            return self.bandwidths.within(gpus[0], 2)
        return self.bandwidths.between((self.offers[one].zone, gpus[0], 1), (self.offers[other].zone, gpus[1], 1))

    def missing_bandwidths(self) -> list[str]:
        """One sentence for each pair of types that a fleet can hold and whose bandwidth was not measured."""
        bare = [kind for kind, table in self.tables.items() if not table.layers]
        found = [f"devices.{kind}: its device type has no layers, so its GPU is not known" for kind in bare]
        if found:
            return found
        for kind, offer in self.offers.items():
            ways = [(other, False) for other in self.offers if other != kind or offer.available > offer.per_host]
            ways += [(kind, True)] if min(offer.per_host, offer.available) > 1 else []
            for other, within in ways:
                try:
                    self._bandwidth(kind, other, within=within)
                except ContentError as error:
                    found.append(f"devices.{kind}: {error.message}")
        return list(dict.fromkeys(found))


def catalogue_names(leaderboards: Path) -> tuple[str, ...]:
    """List the catalogues of a `leaderboards/` folder."""
    return tuple(sorted(path.stem for path in (leaderboards / FOLDER).glob("*.yaml")))


def load_catalogue(leaderboards: Path, name: str) -> Catalogue:
    """Load the catalogue called `name`, or the one in the file `name`.

    Raises `UnknownNameError`, or `ContentError` naming the file and the field.
    """
    path = leaderboards / FOLDER / f"{name}.yaml"
    if not path.is_file():
        path = Path(name)
        if path.suffix not in {".yaml", ".yml"}:
            raise unknown_name("catalogue", name, catalogue_names(leaderboards))
        if not path.is_file():
            raise ContentError("no such file", where=name, hint=_known(leaderboards))
    content = load(path, CatalogueFile, schema=SCHEMA)
    kinds = load(leaderboards / CLUSTERS / LINKS, LinkTypes, schema=SCHEMA).links
    if found := [*_problems(content), *([] if content.bandwidths else _missing_links(content, kinds))]:
        raise ContentError("; ".join(found), where=str(path))
    offers = content.devices
    tables = {
        kind: load_table(leaderboards, offer.device, named_in=f"{path}: devices.{kind}.device")
        for kind, offer in offers.items()
    }
    if content.bandwidths:
        bandwidths = load_bandwidths(leaderboards / LAYERS / content.bandwidths / NETWORKS)
        catalogue = Catalogue(
            name=path.stem, title=content.title, offers=offers, tables=tables, links={}, bandwidths=bandwidths
        )
        if found := catalogue.missing_bandwidths():
            raise ContentError("; ".join(found), where=str(path))
        return catalogue
    return Catalogue(
        name=path.stem,
        title=content.title,
        offers=offers,
        tables=tables,
        links={key: kinds[kind] for key, kind in content.links.items()},
        same_host={
            kind: kinds[offer.same_host or content.links.get(SAME_HOST, next(iter(kinds)))]
            for kind, offer in offers.items()
        },
    )


def _known(leaderboards: Path) -> str:
    return f"catalogues by name: {', '.join(catalogue_names(leaderboards))}"


def _problems(content: CatalogueFile) -> list[str]:
    if not content.devices:
        return ["devices: at least one is needed"]
    found = [f"devices.{kind}.{text}" for kind, offer in content.devices.items() for text in offer.problems()]
    currencies = sorted({offer.price.currency for offer in content.devices.values()})
    if len(currencies) > 1:
        found.append(f"devices: prices in one currency are needed, not in {' and '.join(currencies)}")
    if content.bandwidths and (content.links or any(offer.same_host for offer in content.devices.values())):
        found.append("bandwidths: they link all devices, so links and same_host must be left out")
    return found


def _missing_links(content: CatalogueFile, kinds: Mapping[str, LinkType]) -> list[str]:
    """Every pair of devices that a fleet can hold needs a link."""
    places = (SAME_HOST, SAME_ZONE, ACROSS_ZONES)
    found = [f"links: one of {', '.join(places)}, not {key!r}" for key in content.links if key not in places]
    named = [*content.links.items(), *((f"{kind}.same_host", one.same_host) for kind, one in content.devices.items())]
    found += [f"links.{key}: no link type is called {kind!r}" for key, kind in named if kind and kind not in kinds]
    if found:
        return found
    missing: dict[str, list[str]] = {}
    for kind, offer in content.devices.items():
        if offer.per_host > 1 and offer.available > 1 and not offer.same_host:
            missing.setdefault(SAME_HOST, []).append(f"two {kind}")
        if offer.available > offer.per_host:
            missing.setdefault(SAME_ZONE, []).append(f"two {kind}")
        for other, beside in content.devices.items():
            if kind < other:
                place = SAME_ZONE if offer.zone == beside.zone else ACROSS_ZONES
                missing.setdefault(place, []).append(f"{kind} and {other}")
    return [
        f"links.{place}: missing, and nothing else links {_listed(pairs)}"
        for place, pairs in missing.items()
        if place not in content.links
    ]


def _listed(pairs: Sequence[str]) -> str:
    """The first pair of devices, and how many more there are."""
    return pairs[0] if len(pairs) == 1 else f"{pairs[0]}, nor {counted(len(pairs) - 1, 'other pair')}"
