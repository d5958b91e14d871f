"""What a sandboxed program sees: the system's programs and this Python, read-only, and nothing of the workspace."""

import hashlib
import os
import sys
import sysconfig
from pathlib import Path

import opmark

# Where a submission lies inside the sandbox, and the only place it may write to.
FOLDER = "/submission"
SCRATCH = "/tmp"  # noqa: S108 (a path inside the sandbox, private to one run)
# numba needs a folder it can write to; what was compiled outside is copied there.
COMPILED = "/compiled"
COMPILED_VARIABLE = "OPMARK_COMPILED"
# Variables that hold paths of the sandbox.
PRIVATE = ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", COMPILED_VARIABLE)
_ROOM = Path(opmark.__file__).resolve().parent / "leaderboards"
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ALSO = ("/etc/ld.so.cache", "/etc/alternatives", "/nix/store", "/gnu/store")


def environment(*, budget_s: float, seed: int) -> dict[str, str]:
    """Every variable a submission finds, and no other: a seed of hidden instances is not among them."""
    paths = (f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin")
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")
    return {
        "PATH": ":".join(dict.fromkeys(paths)),
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "NUMBA_CACHE_DIR": f"{SCRATCH}/numba",
        COMPILED_VARIABLE: COMPILED,
        # where OpMark is found when it runs from its source
        "PYTHONPATH": str(_ROOM.parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPMARK_BUDGET_S": f"{budget_s:g}",
        "OPMARK_SEED": str(seed),
        **{f"{name}_NUM_THREADS": "1" for name in threads},
    }


def mounts(folder: Path) -> list[str]:
    """bubblewrap's options for everything that is visible; `folder` is the submission."""
    options = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    shown = [path for path in _ALSO if Path(path).exists()]
    shown += [path for path in _python() if not path.startswith("/usr/")]
    shown = [path for path in shown if not any(path.startswith(f"{other}/") for other in shown)]
    for parent in dict.fromkeys(str(above) for path in shown for above in reversed(Path(path).parents[:-1])):
        # made explicitly, a folder above a mount can be entered by anyone
        options += ["--dir", parent]
    for visible in shown:
        options += ["--ro-bind", visible, visible]
    content = Path(opmark.__file__).parent / "content"
    if content.is_dir():
        options += ["--tmpfs", str(content), "--remount-ro", str(content)]
    if compiled_code().is_dir():
        options += ["--ro-bind", str(compiled_code()), COMPILED]
    options += ["--dir", FOLDER, "--ro-bind", str(folder.resolve()), FOLDER]
    return options


def compiled_code() -> Path:
    """Where numba keeps what it compiled of OpMark's simulator on this machine."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    return Path(given) / numba_folder() if given else _ROOM / "__pycache__"


def numba_folder() -> str:
    """What numba calls the folder of this room in a cache of its own; another name would only mean compiling again."""
    return f"{_ROOM.name}_{hashlib.sha1(str(_ROOM).encode(), usedforsecurity=False).hexdigest()}"


def _python() -> list[str]:
    """The folders of this interpreter, its packages and OpMark itself."""
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    own = str(Path(opmark.__file__).resolve().parent)
    found = {sys.prefix, sys.base_prefix, str(Path(sys.base_prefix).resolve()), *packages, own}
    return sorted(path for path in found if path not in {"/usr", "/"} and Path(path).is_dir())
