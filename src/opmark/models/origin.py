"""The origin of a graph: the network, the packages that run it, and the code that reads it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from opmark.core.canonical import content_id
from opmark.core.files import sha256
from opmark.core.hardware.processor import block_width as width_here
from opmark.models.source import ModelSource, zoo_sizes
from opmark.models.zoo import family_of, models

# Besides the network's own code. Modules called `onnx_…` read ONNX Runtime's graphs, the others trace torch.
_CAPTURE = {
    "onnx": (
        *(f"models/capture/onnx_{name}.py" for name in ("export", "origins", "quantise", "runtime", "session")),
        "models/onnx_file.py",
    ),
    "aten": tuple(
        f"models/capture/{name}.py"
        for name in ("_fused_attention", "_python_calls", "_recorder", "aten", "torch_variants")
    ),
}
# A larger file cannot be loaded anyway, and hashing one takes hours.
_BYTES_AT_MOST = {".onnx": 2**31, ".pt2": 2**36}
_PROGRAMS = "models/programs"
_ZOO = tuple(f"models/zoo/{name}.py" for name in ("__init__", "_shared/blocks", "_shared/weights"))
_TABLE = "models/zoo/_configured/building.py"
_PACKAGE = Path(__file__).resolve().parents[1]

# The parts of a kind that no graph passes through: features for learners, drawing for suites, writing for backends.
_UNREAD = ("code_path", "details", "draw", "features", "shape_group", "steps", "to_aten", "to_onnx", "vary")
_UNREAD_FIELDS = ("categories", "dtypes", "languages", "most_bytes", "most_flops", "space")
_UNREAD_FILES = frozenset({"kinds/_shared/movement_draw.py"})
_UNREAD_FOLDER = "_libraries"
_OTHER = {"aten": "onnx", "onnx": "aten"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOrigin:
    """Everything that determines a graph: two graphs of one origin are equal.

    `dimensions` are those of the call, defaults included; `content` is the hash of a file, empty for a network of
    the zoo; `versions` holds an empty string for a package that is not installed. `block_width` is the floats in a
    block of ONNX Runtime's blocked layout, which the processor decides, and 0 where a graph has no blocks.
    """

    model: str
    language: str
    threads: int
    dimensions: Mapping[str, int]
    content: str
    versions: Mapping[str, str]
    code: str
    block_width: int = 0

    @property
    def id(self) -> str:
        """The hash of the origin."""
        return content_id(self)

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages without which the graph cannot be captured here."""
        return tuple(name for name, found in self.versions.items() if not found)


def origin_of(
    source: ModelSource, language: str, threads: int, sizes: Mapping[str, int], *, block_width: int | None = None
) -> GraphOrigin:
    """The origin of the graph of `source` in `language`; eager torch makes the same calls with any `threads`.

    `block_width` is that of the processor that runs it, by default this one.
    Raises `UsageError` for a dimension that a network of the zoo does not have.
    """
    family = models().get(source.base)
    places = (f"kinds:{language}", *_CAPTURE[language])
    code = code_id(*places, *([_PROGRAMS] if source.path is not None and not source.is_onnx else []))
    packages: tuple[str, ...] = () if source.is_onnx else ("torch",)
    dimensions = dict(sizes)
    if family is not None and family.onnx_path(source.base) == source.path:
        packages = family.packages
        if source.path is None:
            code = network_code(source.base, *places)
            dimensions = zoo_dimensions(source.base, sizes)
    if language == "onnx":
        packages += ("onnxruntime",)
    return GraphOrigin(
        model=source.name,
        language=language,
        threads=threads if language == "onnx" else 1,
        dimensions=dict(sorted(dimensions.items())),
        content="" if source.path is None else sha256(source.path, at_most=_BYTES_AT_MOST[source.path.suffix]),
        versions={package: installed(package) for package in packages},
        code=code,
        block_width=(block_width or width_here()) if language == "onnx" else 0,
    )


def network_code(model: str, *places: str) -> str:
    """Hash of the code of the zoo network called `model` and of the source files at `places`.

    It covers the family's file or table entry and the code that all families share, but no other family.
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


@cache
def installed(package: str) -> str:
    """The version of `package`, or an empty string where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def code_id(*places: str) -> str:
    """Hash of the source files at `places` inside the package; a change makes earlier results stale.

    A place with a language (`kinds:aten`) covers only the code that reads nodes of that language.
    """
    digest = hashlib.sha256()
    for place in places:
        folder, _, language = place.partition(":")
        found = _PACKAGE / folder
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            name = path.relative_to(_PACKAGE).as_posix()
            if language and (name in _UNREAD_FILES or {f"_{_OTHER[language]}", _UNREAD_FOLDER} & set(name.split("/"))):
                continue
            text = path.read_text(encoding="utf-8")
            digest.update(name.encode())
            digest.update((reading_code(text, language) if language else text).encode())
    return digest.hexdigest()[:16]


def reading_code(source: str, language: str) -> str:
    """The lines of a kind's `source` that decide which kernels and which work a graph in `language` has.

    Left out are the methods, class fields and imports that only learners, suites and backends use, and those of the
    other language. The source is formatted, so that a member ends where the next line of its depth begins.
    """
    other = _OTHER[language]
    methods = "|".join((*_UNREAD, f"from_{other}"))
    fields = "|".join((*_UNREAD_FIELDS, f"{other}_ops"))
    begins = re.compile(rf"    (?:def (?:{methods})\(|(?:{fields})(?:: [^=]*)? = )")
    unread_import = f"from opmark.kinds.{_UNREAD_FOLDER} import "
    kept, inside = [], False
    for line in source.splitlines(keepends=True):
        if inside and line.strip() and not line.startswith(("     ", "    )", "    }", "    ]")):
            inside = False
        if not inside and begins.match(line):
            inside = True
        if not inside and not line.startswith(unread_import):
            kept.append(line)
    return "".join(kept)
