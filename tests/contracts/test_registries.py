"""Every extension of every registry: one file, a docstring, and the attribute its registry asks for."""

import importlib
import pkgutil
from functools import cache

import pytest

import opmark
from opmark.core.errors import MissingExtraError
from opmark.core.registry import Registry

PACKAGES_OF_EXTENSIONS = {
    "opmark.bench.backends",
    "opmark.cli.commands",
    "opmark.datasets.checks",
    "opmark.datasets.importers",
    "opmark.kinds",
    "opmark.leaderboards.scoring.metrics",
    "opmark.leaderboards.placers",
    "opmark.leaderboards.site.pages",
    "opmark.models.zoo",
    "opmark.predictors.estimators",
}


@cache
def registries() -> tuple[Registry[object], ...]:
    """Every `Registry` that a module of opmark defines."""
    found: dict[str, Registry[object]] = {}
    for item in pkgutil.walk_packages(opmark.__path__, "opmark."):
        if item.name.startswith("opmark.content") or item.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(item.name)
        except ModuleNotFoundError:
            continue
        for value in vars(module).values():
            if isinstance(value, Registry):
                found.setdefault(value.package, value)
    return tuple(found[package] for package in sorted(found))


def extensions() -> list[tuple[str, str]]:
    return [
        (package, item.name)
        for package in sorted(PACKAGES_OF_EXTENSIONS)
        for item in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if not item.name.startswith("_")
    ]


def test_every_folder_of_extensions_has_one_registry() -> None:
    assert {registry.package for registry in registries()} >= PACKAGES_OF_EXTENSIONS


@pytest.mark.parametrize(("package", "module"), extensions(), ids=lambda part: part.removeprefix("opmark."))
def test_an_extension_loads_or_says_what_is_missing(package: str, module: str) -> None:
    registry = next(registry for registry in registries() if registry.package == package)
    name = module.replace("_", "-")
    assert name in registry.names()
    try:
        extension = registry.load(name)
    except MissingExtraError as missing:
        hint = missing.hint or ""
        pytest.skip(f"{missing.message}; {hint}" if hint.startswith("pip install") else pytest.fail(str(missing)))
    assert extension is not None
    assert (importlib.import_module(f"{package}.{module}").__doc__ or "").strip()
