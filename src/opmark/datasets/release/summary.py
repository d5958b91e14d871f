"""What `list` says about every release without reading its tables."""

from dataclasses import dataclass
from pathlib import Path

from opmark.datasets.format import manifest
from opmark.datasets.release import finding as find


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One release at a glance."""

    name: str
    device: str
    version: str
    id: str
    targets: tuple[str, ...]
    kernels: int
    networks: int
    size_bytes: int
    path: str


def summaries(folder: Path) -> tuple[Summary, ...]:
    """Every release in `folder`. Raises `ContentError` where a manifest cannot be read."""
    return tuple(_summary(name, folder / name) for name in find.names(folder))


def _summary(name: str, path: Path) -> Summary:
    found = manifest.read(path)
    figures = found.statistics.values()
    return Summary(
        name=name,
        device=found.device,
        version=found.version,
        id=found.id,
        targets=tuple(target.name for target in found.targets),
        kernels=sum(target["kernels"] for target in figures),
        networks=sum(target["networks"] for target in figures),
        size_bytes=sum(entry.size_bytes for entry in found.files),
        path=str(path),
    )
