"""The suites and tracks shipped with OpMark, and new workspaces made from them."""

import shutil
import tempfile
from pathlib import Path

from opmark.core.errors import OpMarkError, UnavailableError, UsageError
from opmark.core.workspace import ROOMS, Workspace

_PACKAGE = Path(__file__).resolve().parents[1]
# The content that a new workspace starts with.
_SHIPPED = ("bench/suites", "leaderboards")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "*.tmp")


def shipped_content() -> Workspace:
    """The content inside the wheel or, in a checkout, beside the source. Raises `UnavailableError` without any."""
    for root in (_PACKAGE / "content", checkout()):
        if root is not None and (root / "bench" / "suites").is_dir():
            return Workspace(root)
    raise UnavailableError(
        "this installation has no suites and tracks",
        where=str(_PACKAGE),
        hint="install OpMark from its wheel or from a checkout",
    )


def checkout() -> Path | None:
    """The root of the repository that this code runs from; None for an installed copy."""
    root = _PACKAGE.parents[1]
    return root if _PACKAGE.parent.name == "src" and (root / "pyproject.toml").is_file() else None


def create_workspace(folder: Path) -> Workspace:
    """Make `folder` a workspace with the shipped suites and tracks; its other content stays unchanged.

    Raises `UsageError` if one of the four folders exists already, `OpMarkError` if it cannot be written; either way,
    nothing is left behind.
    """
    source = shipped_content().root
    taken = [room for room in ROOMS if (folder / room).exists()]
    if taken:
        raise UsageError(
            f"already holds {', '.join(f'{room}/' for room in taken)}", where=str(folder), hint="choose another folder"
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
