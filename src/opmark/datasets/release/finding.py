"""Releases found by name: a path, `<device>/<version>`, or `<device>` for its newest version."""

from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.registry import unknown_name
from opmark.core.workspace import versions
from opmark.datasets.format import manifest
from opmark.datasets.release.release import Release, load


def names(folder: Path) -> tuple[str, ...]:
    """List `<device>/<version>` of every release in `folder`, devices sorted, oldest version first."""
    if not folder.is_dir():
        return ()
    devices = sorted(item for item in folder.iterdir() if item.is_dir() and not item.name.startswith("."))
    return tuple(f"{device.name}/{version}" for device in devices for version in versions(device))


def find(name: str, folder: Path) -> Release:
    """Read the release called `name` in `folder`, or the one at the path `name`, and verify it.

    Raises `UnknownNameError` with the nearest name, `NothingSelectedError` where there is no release at all.
    """
    return load(path_of(name, folder))


def path_of(name: str, folder: Path) -> Path:
    """Find the folder of the release called `name`; see `find`."""
    if (Path(name) / manifest.FILE).is_file():
        return Path(name)
    known = names(folder)
    if name in known:
        return folder / name
    newest = {item.partition("/")[0]: item for item in known}
    if name in newest:
        return folder / newest[name]
    if Path(name).exists():
        raise ContentError(f"not a release: it has no {manifest.FILE}", where=name)
    if not known:
        raise NothingSelectedError(
            "there is no release yet", where=str(folder), hint="opmark bench run, then opmark datasets build"
        )
    raise unknown_name("release", name, (*newest, *known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One release in a list."""

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
    """Summarise every release in `folder` by its manifest. Raises `ContentError` where one cannot be read."""
    return tuple(_summary(name, folder / name) for name in names(folder))


def _summary(name: str, path: Path) -> Summary:
    found = manifest.read(path)
    figures = found.statistics.values()
    with manifest.reading_figures(found):
        kernels, networks = (sum(int(target[key]) for target in figures) for key in ("kernels", "networks"))
    return Summary(
        name=name,
        device=found.device,
        version=found.version,
        id=found.id,
        targets=tuple(target.name for target in found.targets),
        kernels=kernels,
        networks=networks,
        size_bytes=sum(entry.size_bytes for entry in found.files),
        path=str(path),
    )
