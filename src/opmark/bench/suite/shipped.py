"""Find suites by name, in the workspace and among the suites that come with OpMark."""

from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.registry import unknown_name
from opmark.core.shipped import shipped_content

_SUFFIX = ".yaml"


def suites(folder: Path | None = None) -> dict[str, Path]:
    """All suites by name; a suite in `folder` replaces a shipped one of the same name."""
    found: dict[str, Path] = {}
    for place in (shipped_content().suites, folder):
        if place is not None and place.is_dir():
            found.update({path.stem: path for path in sorted(place.glob(f"*{_SUFFIX}"))})
    return dict(sorted(found.items()))


def find_suite(name: str, folder: Path | None = None) -> Path:
    """The path of the suite called `name`, or `name` itself if it is a file.

    Raises `UnknownNameError` with the nearest name, `ContentError` if the file does not exist.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"}:
        if not path.is_file():
            raise ContentError("no such file", where=name)
        return path
    known = suites(folder)
    if name not in known:
        raise unknown_name("suite", name, known)
    return known[name]
