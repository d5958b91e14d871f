"""A cache folder for numba on machines that let it write neither beside the code nor in a home folder."""

import os
import stat
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def settle_compile_cache(room: Path) -> None:
    """Name a temporary folder of this user if numba would find none and stop; a folder that is set already stays.

    `room` is the folder of the code to compile. A container whose user has no home is such a machine.
    """
    if VARIABLE not in os.environ and not any(map(_can_be_written, (room / "__pycache__", *_own_cache()))):
        os.environ[VARIABLE] = str(_private_folder())


def _own_cache() -> tuple[Path, ...]:
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(given) if given else Path.home() / ".cache",)
    except RuntimeError:  # a user that the system does not know
        return ()


def _can_be_written(folder: Path) -> bool:
    """True if `folder` can be written, or made if it does not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _private_folder() -> Path:
    """A folder that nobody else can put compiled code into: the usual one of this user, else a new one."""
    folder = Path(tempfile.gettempdir()) / f"opmark-numba-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="opmark-numba-"))
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if own else Path(tempfile.mkdtemp(prefix="opmark-numba-"))
