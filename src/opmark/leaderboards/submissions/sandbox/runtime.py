"""The files and variables that a sandboxed program sees: system programs, this Python and OpMark, read-only.

Nothing of a workspace is among them. What does not belong to the system has a neutral place in the sandbox, so that the
program learns no path of this machine.
"""

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import opmark
from opmark.core.shipped import checkout
from opmark.core.workspace import ROOMS

# The folder of a submission inside the sandbox, and the only folder that it may write to.
FOLDER = "/submission"
SCRATCH = "/tmp"  # noqa: S108 (a path inside the sandbox, private to one run)
# This word of a command stands for the Python that has OpMark's packages.
INTERPRETER = "@python"
# numba needs a folder that it can write to; the functions compiled outside are copied there.
COMPILED = "/compiled"
COMPILED_VARIABLE = "OPMARK_COMPILED"
# Variables that hold paths of the sandbox.
PRIVATE = ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", COMPILED_VARIABLE)
PYTHON_PLACE, PACKAGES_PLACE, SOURCE_PLACE = "/opmark/python", "/opmark/packages", "/opmark/source"
_PACKAGE = Path(opmark.__file__).resolve().parent
# These folders are shown under their own names: they hold the system's programs.
_SYSTEM = ("/usr", "/nix/store", "/gnu/store")
_PROGRAMS = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, slots=True)
class Shown:
    """A folder of this machine, and the path under which a program in the sandbox sees it."""

    host: Path
    inside: str

    def inside_of(self, path: Path) -> str | None:
        """The path of `path` inside, or None where it is not below this folder."""
        here = self.host.resolve()
        return str(Path(self.inside, path.relative_to(here))) if path.is_relative_to(here) else None


@dataclass(frozen=True)
class View:
    """Everything that a program in the sandbox can see, except `private` folders: workspaces."""

    private: tuple[Path, ...] = ()

    @cached_property
    def system(self) -> tuple[Shown, ...]:
        """The folders of the system, under their own names."""
        return tuple(Shown(Path(path), path) for path in _SYSTEM if Path(path).is_dir())

    @cached_property
    def moved(self) -> tuple[Shown, ...]:
        """Python, its packages and OpMark, as far as the system's folders do not show them."""
        base, found = Path(sys.base_prefix).resolve(), []
        if not self._is_native(base):
            parts = (name for name in ("bin", "lib", "lib64") if (base / name).is_dir())
            found += [Shown(base / name, f"{PYTHON_PLACE}/{name}") for name in parts]
        for folder in _package_folders():
            if not self._is_native(folder) and not any(one.inside_of(folder) for one in found):
                found.append(Shown(folder, f"{PACKAGES_PLACE}/{len(found)}"))
        covered = any(one.inside_of(_PACKAGE) and not self._is_private(_PACKAGE) for one in found)
        if not self._is_native(_PACKAGE) and not covered:
            found.append(Shown(_PACKAGE, f"{SOURCE_PLACE}/opmark"))
        return tuple(found)

    @cached_property
    def masked(self) -> tuple[str, ...]:
        """The paths inside over which an empty folder is laid, because they would show a workspace."""
        found: list[str] = []
        for root in self._private_roots:
            for one in (*self.system, *self.moved):
                place = one.inside_of(root)
                # The whole folder of a system cannot be hidden: then its rooms are.
                wanted = (
                    [place] if place and place != one.inside else [f"{place}/{room}" for room in ROOMS] if place else []
                )
                found += [path for path in wanted if Path(one.host, Path(path).relative_to(one.inside)).is_dir()]
        # another OpMark among the packages has tracks as well
        for package in (_PACKAGE, *(folder / _PACKAGE.name for folder in _package_folders())):
            content = self.inside(package / "content") if (package / "content").is_dir() else None
            found += [content] if content else []
        paths = dict.fromkeys(found)
        # nothing can be laid over a folder inside an empty one
        return tuple(path for path in paths if not any(parent in paths for parent in map(str, Path(path).parents)))

    @property
    def interpreter(self) -> str:
        """The path inside of the Python that has OpMark's packages."""
        program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        return self.inside(program) or str(program)

    def inside(self, path: Path) -> str | None:
        """The path of a file or folder inside the sandbox, or None where a program cannot see it."""
        real = path.resolve()
        for one in (*reversed(self.moved), *self.system):
            place = one.inside_of(real)
            if place is not None and not (one in self.system and self._is_private(real)):
                return place
        return None

    def variables(self) -> dict[str, str]:
        """The variables with which programs and Python's packages are found."""
        own = [f"{PYTHON_PLACE}/bin"] if any(one.inside == f"{PYTHON_PLACE}/bin" for one in self.moved) else []
        packages = [one.inside for one in self.moved if one.inside.startswith(PACKAGES_PLACE)]
        source = [SOURCE_PLACE] if any(one.inside.startswith(SOURCE_PLACE) for one in self.moved) else []
        first = own or [str(Path(self.interpreter).parent)]
        found = {"PATH": ":".join(dict.fromkeys((*first, *_PROGRAMS)))}
        if source or packages:
            found["PYTHONPATH"] = ":".join((*source, *packages))
        if own:
            found["LD_LIBRARY_PATH"] = f"{PYTHON_PLACE}/lib"
        return found

    def mounts(self, folder: str, compiled: str, sources: Sequence[str]) -> list[str]:
        """bubblewrap's options for all visible files.

        `folder`, `compiled` and `sources` are the places where the submission, the compiled functions and each of
        `moved` can be bound from.
        """
        options: list[str] = []
        for one in self.system:
            options += [*_dirs(one.inside), "--ro-bind", str(one.host), one.inside]
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            path = Path("/", name)
            if path.is_symlink():
                options += ["--symlink", str(path.readlink()), str(path)]
            elif path.is_dir():
                options += ["--ro-bind", str(path), str(path)]
        for also in ("/etc/ld.so.cache", "/etc/alternatives"):
            if Path(also).exists():
                options += [*_dirs(also), "--ro-bind", also, also]
        for one, source in zip(self.moved, sources, strict=True):
            options += [*_dirs(one.inside), "--ro-bind", source, one.inside]
        for masked in self.masked:
            options += ["--tmpfs", masked, "--remount-ro", masked]
        options += ["--dir", COMPILED, "--ro-bind", compiled, COMPILED]
        return [*options, "--dir", FOLDER, "--ro-bind", folder, FOLDER]

    @cached_property
    def _private_roots(self) -> tuple[Path, ...]:
        """Workspaces, and the repository that OpMark runs from: it holds tracks with their solutions."""
        source = checkout()
        return tuple(dict.fromkeys(path.resolve() for path in (*self.private, *([source] if source else []))))

    def _is_private(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self._private_roots)

    def _is_native(self, path: Path) -> bool:
        """True where a system folder shows `path`, and no workspace hides it."""
        return any(one.inside_of(path) for one in self.system) and not self._is_private(path)


def environment(*, budget_s: float, seed: int) -> dict[str, str]:
    """The variables of a submission that do not depend on the sandbox; no seed of hidden instances is among them."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")
    return {
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "NUMBA_CACHE_DIR": f"{SCRATCH}/numba",
        COMPILED_VARIABLE: COMPILED,
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPMARK_BUDGET_S": f"{budget_s:g}",
        "OPMARK_SEED": str(seed),
        **{f"{name}_NUM_THREADS": "1" for name in threads},
    }


def host_variables() -> dict[str, str]:
    """The variables with which a program without a sandbox finds programs and OpMark."""
    paths = (f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", *_PROGRAMS)
    return {"PATH": ":".join(dict.fromkeys(paths)), "PYTHONPATH": str(_PACKAGE.parent)}


def compiled_code(package: str = "") -> dict[str, Path]:
    """The folders with numba's compiled functions on this machine, by their names in a numba cache.

    numba names a folder after the folder of the source. Under another name it would compile the functions again, so
    `package` is the path of OpMark's package where they are used (default: here).
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    room = _PACKAGE / "leaderboards"
    found = {}
    for folder in (room, *(path for path in sorted(room.rglob("*")) if (path / "__init__.py").is_file())):
        seen = str(Path(package or str(_PACKAGE), folder.relative_to(_PACKAGE)))
        compiled = Path(given) / _cache_name(folder, str(folder)) if given else folder / "__pycache__"
        if next(compiled.glob("*.nbi"), None) is not None:
            found[_cache_name(folder, seen)] = compiled
    return found


def _cache_name(folder: Path, seen: str) -> str:
    return f"{folder.name}_{hashlib.sha1(seen.encode(), usedforsecurity=False).hexdigest()}"


def _package_folders() -> list[Path]:
    """The folders of installed packages of this interpreter, resolved."""
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    also = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    return [path for path in dict.fromkeys(Path(name).resolve() for name in (*installed, *also)) if path.is_dir()]


def _dirs(path: str) -> Iterator[str]:
    """Options that make the parents of a mount: the account of a submission could not enter bubblewrap's own."""
    for above in reversed(Path(path).parents[:-1]):
        yield from ("--dir", str(above))
