"""What extensions there are, with one sentence each, read from their files without importing any."""

import ast
import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path

from opmark.core.registry import unknown_name

# What people call them, and where they lie.
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
    """One file: the name it is called by, its first sentence, and the module it is."""

    name: str
    summary: str
    module: str


def extensions(what: str) -> tuple[Extension, ...]:
    """Those of a key of `PACKAGES`, by name. Raises `UnknownNameError`."""
    if what not in PACKAGES:
        raise unknown_name("list of extensions", what, PACKAGES)
    return tuple(item for package in PACKAGES[what] for item in _in(package))


def _in(package: str) -> tuple[Extension, ...]:
    folder = importlib.import_module(package)
    found = [item.name for item in pkgutil.iter_modules(folder.__path__) if not item.name.startswith("_")]
    return tuple(
        Extension(name=name.replace("_", "-"), summary=_sentence(Path(path) / f"{name}.py"), module=f"{package}.{name}")
        for path in folder.__path__
        for name in sorted(found)
    )


def _sentence(path: Path) -> str:
    """The first paragraph of a file's docstring, on one line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
