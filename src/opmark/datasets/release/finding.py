"""Releases by name: a path, `<device>/<version>`, or `<device>` for its newest version."""

from pathlib import Path

from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.registry import unknown_name
from opmark.core.workspace import versions
from opmark.datasets.format import manifest
from opmark.datasets.release.release import Release, load


def names(folder: Path) -> tuple[str, ...]:
    """`<device>/<version>` of every release in `folder`, devices sorted, oldest version first."""
    if not folder.is_dir():
        return ()
    devices = sorted(item for item in folder.iterdir() if item.is_dir() and not item.name.startswith("."))
    return tuple(f"{device.name}/{version}" for device in devices for version in versions(device))


def find(name: str, folder: Path) -> Release:
    """The verified release called `name` in `folder`, or the one at the path `name`.

    Raises `UnknownNameError` with the nearest name, `NothingSelectedError` where there is no release at all.
    """
    return load(path_of(name, folder))


def path_of(name: str, folder: Path) -> Path:
    """Where the release called `name` is; see `find`."""
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
