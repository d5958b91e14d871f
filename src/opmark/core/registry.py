"""Registries and lists of extensions: the modules of a package, found by name and imported only when used."""

import ast
import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from opmark.core.errors import MissingExtraError, OpMarkError, UnknownNameError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """The extensions of one package: the module `some_name` defines `attribute` and is registered as `some-name`.

    A package may hold further extensions by name in a `TABLE`. Errors call an extension by the `noun`. Modules and
    folders whose names start with `_` are not extensions.
    """

    package: str
    attribute: str
    noun: str

    def names(self) -> tuple[str, ...]:
        """All registered names, sorted; only the package itself is imported."""
        return _module_names(self.package)

    def load(self, name: str) -> T:
        """The extension called `name`. Raises `UnknownNameError` or `MissingExtraError`."""
        if name not in self.names():
            raise unknown_name(self.noun, name, self.names())
        table: Mapping[str, T] = vars(importlib.import_module(self.package)).get("TABLE", {})
        if name in table:
            return table[name]
        try:
            module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if missing.startswith("opmark"):
                raise
            raise MissingExtraError(
                f"{self.noun} {name!r} needs {missing}, which is not installed", hint=install_hint(missing)
            ) from error
        extension: T = getattr(module, self.attribute)
        return extension

    def __iter__(self) -> Iterator[T]:
        return (self.load(name) for name in self.names())


# A hint must stay readable: of more names than this, it lists only the most similar ones.
_MOST_LISTED, _MOST_SIMILAR = 40, 8
_EXTRAS = {
    "transformers": "models",
    "ortools": "solvers",
    "sklearn": "solvers",
    "duckdb": "sql",
    "pynvml": "gpu",
    "mlcroissant": "meta",
    "pyseccomp": "sandbox",
    "timm": "strangers",
}


def install_hint(module: str) -> str:
    """The command that installs `module`."""
    root = module.partition(".")[0]
    wanted = f"'opmark[{_EXTRAS[root]}]'" if root in _EXTRAS else root
    return f"pip install {wanted}"


def require(module: str) -> None:
    """Raise `MissingExtraError` unless `module` can be imported."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"this needs {module}, which is not installed", hint=install_hint(module)) from error


def unknown_name(noun: str, name: str, known: Iterable[str]) -> OpMarkError:
    """The error for an unknown name; its hint has the nearest known name, or the known names."""
    choices = sorted(known)
    close = difflib.get_close_matches(name, choices, n=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    elif len(choices) <= _MOST_LISTED:
        hint = f"known: {', '.join(choices) or 'none'}"
    else:
        similar = difflib.get_close_matches(name, choices, n=_MOST_SIMILAR, cutoff=0)
        hint = f"{len(choices)} are known, among them {', '.join(similar)}"
    return UnknownNameError(f"no {noun} is called {name!r}", hint=hint)


@cache
def _module_names(package: str) -> tuple[str, ...]:
    folder = importlib.import_module(package)
    modules = [item.name for item in pkgutil.iter_modules(folder.__path__) if not item.name.startswith("_")]
    return tuple(sorted((*(name.replace("_", "-") for name in modules), *getattr(folder, "TABLE", ()))))


# Sort of extension: the packages that hold them.
PACKAGES = {
    "kinds": ("opmark.kinds",),
    "families": ("opmark.models.zoo",),
    "backends": ("opmark.bench.backends",),
    "estimators": ("opmark.predictors.estimators",),
    "placers": ("opmark.leaderboards.placers",),
    "profiles": ("opmark.leaderboards.simulator.published",),
    "objectives": ("opmark.leaderboards.simulator.objectives",),
    "metrics": ("opmark.leaderboards.scoring.metrics",),
    "bounds": ("opmark.leaderboards.bounds.relaxations",),
    "checks": ("opmark.datasets.checks",),
    "formats": ("opmark.datasets.importers", "opmark.leaderboards.making.importers"),
    "arrivals": ("opmark.leaderboards.problem.rules.arrival_processes",),
    "schedules": ("opmark.leaderboards.problem.rules.pipeline_schedules",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """An extension: its name, the first sentence of its docstring, and its module."""

    name: str
    summary: str
    module: str


def extensions(what: str) -> tuple[Extension, ...]:
    """The extensions of one sort, a key of `PACKAGES`, sorted by name. Raises `UnknownNameError`."""
    if what not in PACKAGES:
        raise unknown_name("list of extensions", what, PACKAGES)
    return tuple(item for package in PACKAGES[what] for item in extensions_in(package))


def extensions_in(package: str) -> tuple[Extension, ...]:
    """The extensions in one package, sorted by name; nothing but the package itself is imported."""
    folder = importlib.import_module(package)
    found = [item.name for item in pkgutil.iter_modules(folder.__path__) if not item.name.startswith("_")]
    files = [
        Extension(name=name.replace("_", "-"), summary=_sentence(Path(path) / f"{name}.py"), module=f"{package}.{name}")
        for path in folder.__path__
        for name in found
    ]
    # Entries of a table have a summary of their own.
    entries = [
        Extension(name=name, summary=item.entry.summary, module=package)
        for name, item in getattr(folder, "TABLE", {}).items()
    ]
    return tuple(sorted((*files, *entries), key=lambda item: item.name.replace("-", "_")))


def _sentence(path: Path) -> str:
    """The first paragraph of a file's docstring, on one line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
