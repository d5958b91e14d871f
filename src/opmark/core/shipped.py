"""What comes with OpMark: suites and tracks, inside the wheel or, in a checkout, beside the source."""

import shutil
import tempfile
from pathlib import Path

from opmark.core.errors import OpMarkError, UnavailableError, UsageError
from opmark.core.workspace import ROOMS, Workspace

_PACKAGE = Path(__file__).resolve().parents[1]
# What a new workspace starts with, of each room.
_SHIPPED = ("bench/suites", "leaderboards")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "*.tmp")


def shipped_content() -> Workspace:
    """The folders that came with this installation. Raises `UnavailableError` where there are none."""
    for root in (_PACKAGE / "content", checkout()):
        if root is not None and (root / "bench" / "suites").is_dir():
            return Workspace(root)
    raise UnavailableError(
        "this installation came without suites and tracks",
        where=str(_PACKAGE),
        hint="install OpMark from its wheel or from a checkout",
    )


def checkout() -> Path | None:
    """The root of the repository this code runs from, or None where it is installed."""
    root = _PACKAGE.parents[1]
    return root if _PACKAGE.parent.name == "src" and (root / "pyproject.toml").is_file() else None


def create_workspace(folder: Path) -> Workspace:
    """Make `folder` a workspace with the shipped suites and tracks; what else lies in it stays as it is.

    Raises `UsageError` where one of the four folders is there already, `OpMarkError` where it cannot be written;
    in either case nothing is left behind.
    """
    source = shipped_content().root
    taken = [room for room in ROOMS if (folder / room).exists()]
    if taken:
        raise UsageError(
            f"holds {', '.join(f'{room}/' for room in taken)} already", where=str(folder), hint="choose another folder"
        )
    made: list[Path] = []
    try:
        for parent in (folder, *folder.parents):
            if parent.exists():
                break
            made.append(parent)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".init.", ignore_cleanup_errors=True) as name:
            temporary = Path(name)
            for room in ROOMS:
                (temporary / room).mkdir()
            for part in _SHIPPED:
                if (source / part).is_dir():
                    shutil.copytree(source / part, temporary / part, ignore=_LEFT_OUT, dirs_exist_ok=True)
            for room in ROOMS:
                (temporary / room).rename(folder / room)
    except (OSError, shutil.Error) as error:
        for room in ROOMS:
            shutil.rmtree(folder / room, ignore_errors=True)
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OpMarkError(f"cannot write: {reason}", where=str(folder), hint="choose another place") from error
    return Workspace(folder)
