"""Extensions are files: a folder's modules, found by name and imported only when asked for."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from opmark.core.errors import MissingExtraError, OpMarkError, UnknownNameError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """The extensions of one package: each module `some_name` defines `attribute` and is registered as `some-name`.

    `noun` is what an error calls one of them. Modules whose name starts with `_` are not extensions.
    """

    package: str
    attribute: str
    noun: str

    def names(self) -> tuple[str, ...]:
        """All registered names, sorted; nothing is imported but the package itself."""
        return _module_names(self.package)

    def load(self, name: str) -> T:
        """The extension called `name`. Raises `UnknownNameError` or `MissingExtraError`."""
        if name not in self.names():
            raise unknown_name(self.noun, name, self.names())
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


# A hint is read, not searched: of more names than this only the likest are said.
_MOST_LISTED, _LISTED_OF_MANY = 40, 8
_EXTRAS = {
    "transformers": "models",
    "ortools": "solvers",
    "duckdb": "sql",
    "pynvml": "gpu",
    "mlcroissant": "meta",
    "pyseccomp": "sandbox",
}


def install_hint(module: str) -> str:
    """How to install what provides `module`."""
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
    """The error for a name nobody has, with the nearest one that exists."""
    choices = sorted(known)
    close = difflib.get_close_matches(name, choices, n=1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    elif len(choices) <= _MOST_LISTED:
        hint = f"known: {', '.join(choices) or 'none'}"
    else:
        likest = difflib.get_close_matches(name, choices, n=_LISTED_OF_MANY, cutoff=0)
        hint = f"known are {len(choices)}, among them {', '.join(likest)}"
    return UnknownNameError(f"no {noun} is called {name!r}", hint=hint)


@cache
def _module_names(package: str) -> tuple[str, ...]:
    folder = importlib.import_module(package)
    modules = pkgutil.iter_modules(folder.__path__)
    return tuple(sorted(item.name.replace("_", "-") for item in modules if not item.name.startswith("_")))
