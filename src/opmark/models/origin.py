"""What decides the kernels of a model: the network itself, the packages that run it, and the code that reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from opmark.core.canonical import content_id
from opmark.core.files import sha256
from opmark.models.source import Source, code_id, zoo_sizes
from opmark.models.zoo import family_of, models

# Besides the network's own code. What begins with `onnx_` reads ONNX Runtime, the other modules trace torch.
_CAPTURE = {
    "onnx": (
        *(f"models/capture/onnx_{name}.py" for name in ("export", "origins", "quantise", "runtime", "session")),
        "models/onnx_file.py",
    ),
    "aten": tuple(f"models/capture/{name}.py" for name in ("_recorder", "aten", "lower", "program", "training")),
}
_ZOO = tuple(f"models/zoo/{name}.py" for name in ("__init__", "_shared/blocks", "_shared/weights"))
_TABLE = "models/zoo/_configured/building.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a graph comes from. Two graphs of one origin are equal.

    `dimensions` are those of the call, defaults included; `content` is the hash of a file, empty for a network of
    the zoo; `versions` holds an empty string for a package that is not installed.
    """

    model: str
    language: str
    threads: int
    dimensions: Mapping[str, int]
    content: str
    versions: Mapping[str, str]
    code: str

    @property
    def id(self) -> str:
        """Its hash."""
        return content_id(self)

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages without which the graph cannot be captured here."""
        return tuple(name for name, found in self.versions.items() if not found)


def origin_of(source: Source, language: str, threads: int, sizes: Mapping[str, int]) -> Origin:
    """The origin of the graph of `source` in `language`; eager torch makes the same calls with any `threads`.

    Raises `UsageError` for a dimension that a network of the zoo does not have.
    """
    family = models().get(source.base)
    places = ("kinds", *_CAPTURE[language])
    code = code_id(*places)
    packages: tuple[str, ...] = () if source.is_onnx else ("torch",)
    dimensions = dict(sizes)
    if family is not None and family.onnx_path(source.base) == source.path:
        packages = family.packages
        if source.path is None:
            code = network_code(source.base, *places)
            dimensions = zoo_dimensions(source.base, sizes)
    if language == "onnx":
        packages += ("onnxruntime",)
    return Origin(
        model=source.name,
        language=language,
        threads=threads if language == "onnx" else 1,
        dimensions=dict(sorted(dimensions.items())),
        content="" if source.path is None else sha256(source.path),
        versions={package: installed(package) for package in packages},
        code=code,
    )


def network_code(model: str, *places: str) -> str:
    """Hash of what decides the zoo network called `model`, and of the source files at `places`.

    Its family's file or entry of the table, and what all families share; a change of another family leaves it as it is.
    """
    family = family_of(model)
    if family.entry is not None:
        return content_id([code_id(*places, *_ZOO, _TABLE), family.entry])
    return code_id(*places, *_ZOO, f"models/zoo/{family.name.replace('-', '_')}.py")


def zoo_dimensions(model: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """`sizes` with the defaults of the zoo network called `model`. Raises `UsageError` for other dimensions."""
    family = family_of(model)
    batch, size = zoo_sizes(sizes)
    return {
        "batch": family.default_batch if batch is None else batch,
        "size": family.sizes[model] if size is None else size,
    }


def installed(package: str) -> str:
    """The version of `package`, or an empty string where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
