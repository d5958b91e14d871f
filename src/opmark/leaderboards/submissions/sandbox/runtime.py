"""The files and variables that a sandboxed program sees: system programs and this Python, read-only; no workspace."""

import hashlib
import os
import sys
import sysconfig
from pathlib import Path

import opmark

# The folder of a submission inside the sandbox, and the only folder that it may write to.
FOLDER = "/submission"
SCRATCH = "/tmp"  # noqa: S108 (a path inside the sandbox, private to one run)
# numba needs a folder that it can write to; the functions compiled outside are copied there.
COMPILED = "/compiled"
COMPILED_VARIABLE = "OPMARK_COMPILED"
# Variables that hold paths of the sandbox.
PRIVATE = ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", COMPILED_VARIABLE)
_ROOM = Path(opmark.__file__).resolve().parent / "leaderboards"
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ALSO = ("/etc/ld.so.cache", "/etc/alternatives", "/nix/store", "/gnu/store")


def environment(*, budget_s: float, seed: int) -> dict[str, str]:
    """All environment variables of a submission; the seed of hidden instances is not among them."""
    paths = (f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin")
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")
    return {
        "PATH": ":".join(dict.fromkeys(paths)),
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "NUMBA_CACHE_DIR": f"{SCRATCH}/numba",
        COMPILED_VARIABLE: COMPILED,
        # finds OpMark where it runs from its source
        "PYTHONPATH": str(_ROOM.parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPMARK_BUDGET_S": f"{budget_s:g}",
        "OPMARK_SEED": str(seed),
        **{f"{name}_NUM_THREADS": "1" for name in threads},
    }


def mounts(folder: Path) -> list[str]:
    """bubblewrap's options for all visible files; `folder` is the submission."""
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
        # bubblewrap's own folders above a mount could not be entered by the submission's account
        options += ["--dir", parent]
    for visible in shown:
        options += ["--ro-bind", visible, visible]
    content = Path(opmark.__file__).parent / "content"
    if content.is_dir():
        options += ["--tmpfs", str(content), "--remount-ro", str(content)]
    options += ["--dir", COMPILED]
    for name, compiled in compiled_code().items():
        options += ["--ro-bind", str(compiled), f"{COMPILED}/{name}"]
    options += ["--dir", FOLDER, "--ro-bind", str(folder.resolve()), FOLDER]
    return options


def compiled_code() -> dict[str, Path]:
    """The folders with numba's compiled functions of this room on this machine, by their names in a numba cache.

    numba names a folder after the folder of the source. Under another name it would compile the functions again.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    found = {}
    for folder in (_ROOM, *(path for path in sorted(_ROOM.rglob("*")) if (path / "__init__.py").is_file())):
        name = f"{folder.name}_{hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}"
        compiled = Path(given) / name if given else folder / "__pycache__"
        if next(compiled.glob("*.nbi"), None) is not None:
            found[name] = compiled
    return found


def _python() -> list[str]:
    """The folders of this interpreter, its packages and OpMark."""
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    own = str(Path(opmark.__file__).resolve().parent)
    found = {sys.prefix, sys.base_prefix, str(Path(sys.base_prefix).resolve()), *packages, own}
    return sorted(path for path in found if path not in {"/usr", "/"} and Path(path).is_dir())
