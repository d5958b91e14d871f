"""The workspace: the folder that holds bench/, datasets/, predictors/ and leaderboards/."""

from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.slug import VERSION

ROOMS = ("bench", "datasets", "predictors", "leaderboards")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The paths of a workspace; they need not exist before something is written."""

    root: Path

    @property
    def suites(self) -> Path:
        """The folder of suites (YAML files)."""
        return self.root / "bench" / "suites"

    @property
    def journals(self) -> Path:
        """The folder of journals, the append-only logs of measuring runs."""
        return self.root / "bench" / "journals"

    @property
    def datasets(self) -> Path:
        """The folder of releases: `<device>/<version>/`."""
        return self.root / "datasets"

    @property
    def predictors(self) -> Path:
        """The folder of predictors: `<device>/<version>/<target>/`."""
        return self.root / "predictors"

    @property
    def leaderboards(self) -> Path:
        """The folder of tracks: `<track>/`."""
        return self.root / "leaderboards"

    @property
    def cache(self) -> Path:
        """The folder of files that can be made again: exported models and captured graphs."""
        return self.root / ".cache"


def find_workspace(start: Path) -> Workspace:
    """The nearest folder at or above `start` that holds the four content folders. Raises `ContentError`."""
    for folder in (start, *start.parents):
        if all((folder / room).is_dir() for room in ROOMS):
            return Workspace(folder)
    raise ContentError(
        "no workspace here: neither this folder nor one above it holds " + ", ".join(f"{room}/" for room in ROOMS),
        where=str(start),
        hint="run `opmark init DIR`, or pass --workspace DIR",
    )


def version_key(version: str) -> tuple[int, ...]:
    """A sort key that orders `1.9.0` before `1.10.0`. Raises `ContentError` for a malformed version."""
    if not VERSION.accepts(version):
        raise ContentError(f"{version!r} is not a version", hint="write it like 1.0.0")
    return tuple(int(part) for part in version.split("."))


def versions(folder: Path) -> list[str]:
    """The names of the version folders in `folder`, oldest first."""
    if not folder.is_dir():
        return []
    found = [item.name for item in folder.iterdir() if item.is_dir() and VERSION.accepts(item.name)]
    return sorted(found, key=version_key)
