"""The folder of numba's compiled functions: one per user, and one per state of the sources, of numba and of the CPU.

numba notices changes of a function's own file only. A changed named tuple of another file would meet functions that
were compiled for the old one, so the folder's name is a hash of all of them.
"""

import hashlib
import os
import platform
import stat
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
UNCOMPILED_VARIABLE = "NUMBA_DISABLE_JIT"
# Functions are compiled in these folders of the room, and read named tuples of them.
_ROOMS = ("problem", "search", "simulator")


def runs_uncompiled() -> bool:
    """True in a process in which numba compiles nothing."""
    return os.environ.get(UNCOMPILED_VARIABLE, "0") != "0"


def settle_compile_cache(room: Path) -> None:
    """Name numba's cache folder for the code in `room`; a folder that is set already stays.

    It lies in the user's cache folder, or where that cannot be written, in a temporary folder of this user.
    """
    if VARIABLE not in os.environ:
        usual = _user_cache()
        folder = _private_folder() if usual is None or not _can_be_written(usual) else usual / "opmark" / "compiled"
        os.environ[VARIABLE] = str(folder / _key(room))


def _key(room: Path) -> str:
    """A hash of everything that compiled code depends on. numba itself looks at the times of files."""
    found = hashlib.blake2b(digest_size=8)
    parts = [str(room), sys.version, version("numba"), platform.machine(), _processor()]
    for path in sorted(path for name in _ROOMS for path in (room / name).rglob("*.py")):
        parts += [str(path.relative_to(room)), str(path.stat().st_mtime_ns)]
        found.update(path.read_bytes())
    found.update("\0".join(parts).encode())
    return found.hexdigest()


def _processor() -> str:
    """The model of the CPU: a home folder may be shared by unlike machines."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            return next((line for line in lines if line.startswith(("model name", "CPU part"))), "")
    except OSError:
        return platform.processor()


def _user_cache() -> Path | None:
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(given) if given else Path.home() / ".cache"
    except RuntimeError:  # a user that the system does not know
        return None


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
