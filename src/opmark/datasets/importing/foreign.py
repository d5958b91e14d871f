"""From tables that others published to a release of ours, marked as imported."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opmark.core.canonical import content_id
from opmark.core.environment import Environment, Fact
from opmark.core.errors import ContentError, NothingSelectedError, UsageError
from opmark.core.files import sha256
from opmark.core.measurement import OK, Measurement, NetworkMeasurement
from opmark.core.target import Target
from opmark.datasets.format.manifest import IMPORTED, Provenance, Source
from opmark.datasets.importing.accelerators import facts_of
from opmark.datasets.importing.importer import IMPORTERS, Entry, Importer, Runtime
from opmark.datasets.release.contents import from_measurements
from opmark.datasets.release.release import Release, build_from
from opmark.kinds import work_of

_SLUG = re.compile(r"^[a-z0-9]+(?:[.-][a-z0-9]+)*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What became of the tables: the release, and how many rows were left out, by the reason."""

    release: Release
    left_out: Mapping[str, int]


def import_tables(
    paths: Sequence[Path],
    format_name: str,
    folder: Path,
    *,
    device: str,
    facts: Mapping[str, Fact] | None = None,
    version: str | None = None,
) -> Import:
    """A release in `folder/<device>/<version>` of the tables at `paths`, all of one format and one device.

    `facts` are known of the device beside what the tables say. Raises `UnknownNameError` for a format, `UsageError`
    for a device that is no folder's name, `ContentError` naming file, line and column of the first bad row, or the
    line whose device or runtime differs from those before; `NothingSelectedError` where no row is left.
    """
    if not _SLUG.match(device):
        raise UsageError(f"{device!r} cannot name a device", hint="write it in small letters like a100-pcie-40gb")
    importer = IMPORTERS.load(format_name)
    left_out: Counter[str] = Counter()
    targets: dict[Runtime, Target] = {}
    measurements: list[Measurement] = []
    networks: list[NetworkMeasurement] = []
    sources: list[Source] = []
    environment: Environment | None = None
    for path in paths:
        before = len(measurements), len(networks)
        for entry in importer.entries(path):
            if entry.left_out:
                left_out[entry.left_out] += 1
                continue
            if environment is None:
                environment = _environment(entry.runtime, device, facts or {})
            target = targets.get(entry.runtime)
            if target is None:
                target = targets[entry.runtime] = _target(entry, device, targets)
            if entry.kernel is not None:
                measurements.append(_measurement(entry, target, importer, format_name, environment))
            else:
                networks.append(_network(entry, target, importer, format_name, environment))
        added = len(measurements) - before[0], len(networks) - before[1]
        sources.append(Source(name=path.name, sha256=sha256(path), kernels=added[0], networks=added[1]))
    if environment is None:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in left_out.most_common(3)) or "no rows"
        raise NothingSelectedError(f"nothing in these tables could be imported: {reasons}", where=str(paths[0]))
    contents = from_measurements(
        str(paths[0]),
        measurements,
        networks,
        environments=(environment,),
        targets=tuple(targets.values()),
        sources=sources,
        licence=importer.licence,
        provenance=Provenance(
            kind=IMPORTED,
            format=format_name,
            source=importer.source,
            attribution=importer.attribution,
            label=importer.label,
        ),
    )
    release = build_from([contents], folder, version=version)
    return Import(release=release, left_out=dict(left_out.most_common()))


def _environment(runtime: Runtime, device: str, facts: Mapping[str, Fact]) -> Environment:
    hardware = runtime.hardware or device
    return Environment(device=device, checked={"hardware": hardware, **facts_of(hardware), **facts})


def _target(entry: Entry, device: str, known: Mapping[Runtime, Target]) -> Target:
    runtime = entry.runtime
    target = Target(device=device, backend=runtime.backend, provider=runtime.provider, version=runtime.version)
    for other, one in known.items():
        if other.hardware != runtime.hardware:
            raise ContentError(
                f"measured on {runtime.hardware!r}, the rows before on {other.hardware!r}",
                where=entry.where,
                hint="import each device on its own",
            )
        if one.name == target.name:
            raise ContentError(
                f"{target.name} of version {runtime.version!r}, the rows before of {other.version!r}",
                where=entry.where,
                hint="import each version on its own",
            )
    return target


def _measurement(entry: Entry, target: Target, importer: Importer, suite: str, environment: Environment) -> Measurement:
    assert entry.kernel is not None
    return Measurement(
        kernel=entry.kernel,
        work=work_of(entry.kernel),
        target=target.name,
        status=OK,
        latency_hot_ns=entry.latency_ns,
        samples=importer.samples,
        processes=1,
        scheduling="unknown",
        suite=suite,
        environment_id=environment.id,
    )


def _network(
    entry: Entry, target: Target, importer: Importer, suite: str, environment: Environment
) -> NetworkMeasurement:
    return NetworkMeasurement(
        network=entry.network,
        family=entry.family,
        target=target.name,
        # nobody published the kernels that ran; the name stands for them
        graph_id=content_id(["imported", entry.network]),
        status=OK,
        role="training",
        latency_ns=entry.latency_ns,
        samples=importer.samples,
        processes=1,
        scheduling="unknown",
        suite=suite,
        environment_id=environment.id,
    )
