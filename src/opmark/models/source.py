"""What a model on the command line is: an `.onnx` file, a `.pt2` file, or a name of the zoo, perhaps `@` a variant."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import opmark
from opmark.core.errors import ContentError, UsageError
from opmark.models.variant import VARIANTS, split_variant, variant_language
from opmark.models.zoo import family_of

_A = {".onnx": "an .onnx", ".pt2": "a .pt2"}
SUFFIXES = tuple(_A)
_ZOO_DIMENSIONS = ("batch", "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A model and where it comes from; `path` is its file, `None` for a torch network of the zoo.

    `name` is what tables call it, its variant included; `base` and `family` are of the network without it.
    """

    name: str
    base: str
    family: str
    path: Path | None = None
    variant: str = ""

    @property
    def is_onnx(self) -> bool:
        """Whether it is an ONNX file."""
        return self.path is not None and self.path.suffix == ".onnx"

    @property
    def language(self) -> str:
        """The graph language it is at home in: that of its variant, else of its file."""
        return variant_language(self.variant) or ("onnx" if self.is_onnx else "aten")


def source_of(model: str) -> Source:
    """The file or zoo network that `model` means.

    Raises `ContentError` for a file that is not there, `UnknownNameError` for a name the zoo does not have or a
    variant that does not exist, `UsageError` for a variant that this kind of file cannot have.
    """
    base, variant = split_variant(model)
    ending = f"@{variant}" if variant else ""
    path = Path(base)
    file: Path | None
    if path.suffix in SUFFIXES:
        if path.is_dir():
            raise ContentError(f"is a folder, not {_A[path.suffix]} file", where=base, hint="name the file in it")
        if not path.is_file():
            raise ContentError("no such file", where=base)
        name, family, file = path.stem, path.stem, path
    else:
        found = family_of(base)
        name, family, file = base, found.label(base), found.onnx_path(base)
    if variant_language(variant) == "aten" and file is not None:
        reason = "an ONNX file, and torch has no kernels for one" if file.suffix == ".onnx" else "traced as it is"
        raise UsageError(
            f"{base} has no variant {variant!r}: it is {reason}", hint="use a torch network of the zoo for this variant"
        )
    return Source(name=f"{name}{ending}", base=name, family=family, path=file, variant=variant)


def variants_of(model: str) -> tuple[str, ...]:
    """The variants of a network of the zoo: one that is an ONNX file has none of torch."""
    torch = family_of(model).onnx_path(model) is None
    return tuple(variant for variant in VARIANTS if torch or variant_language(variant) == "onnx")


def zoo_sizes(dimensions: Mapping[str, int]) -> tuple[int | None, int | None]:
    """Batch and size of a zoo network, None where the default is meant. Raises `UsageError` for other dimensions."""
    for name in dimensions:
        if name not in _ZOO_DIMENSIONS:
            raise UsageError(f"a network of the zoo has no dimension {name!r}", hint="it has: batch, size")
    return dimensions.get("batch"), dimensions.get("size")


@cache
def code_id(*places: str) -> str:
    """Hash of the source files at `places` inside the package: what they once made is stale when they change."""
    root = Path(opmark.__file__).parent
    digest = hashlib.sha256()
    for place in places:
        found = root / place
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
