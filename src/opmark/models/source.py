"""The meaning of a model's name: an `.onnx` file, a `.pt2` file or a zoo network, perhaps with `@` and a variant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import ContentError, UsageError
from opmark.core.registry import unknown_name
from opmark.models.zoo import family_of, models

_A = {".onnx": "an .onnx", ".pt2": "a .pt2"}
SUFFIXES = tuple(_A)
_EXPORT = (
    "in Python, with the module and an example of its input: "
    'torch.export.save(torch.export.export(module.eval(), (example,)), "model.pt2")'
)
# Files that people have instead, each with a reason against it and the way to a file that is read.
_OTHERS = {
    **dict.fromkeys(
        (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"),
        ("is a pickle, which runs the code in it, and often holds weights without a network", _EXPORT),
    ),
    ".safetensors": ("holds weights without a network", _EXPORT),
    ".py": ("is Python source, and OpMark runs no code of a model's file", _EXPORT),
    **dict.fromkeys(
        (".h5", ".keras", ".pb", ".tflite"),
        ("is a TensorFlow file", "python -m tf2onnx.convert writes an .onnx file from it"),
    ),
}
_FOLDER_HINT = (
    f"optimum-cli export onnx --model FOLDER OUT writes .onnx files from a Hugging Face folder; or, {_EXPORT}"
)
_ZOO_DIMENSIONS = ("batch", "size")
# The same network in another element type, or trained.
INT8 = ("int8-dynamic", "int8-static")
TORCH = ("bf16", "training", "bf16-training")
VARIANTS = (*INT8, *TORCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model and where it comes from; `path` is its file, `None` for a torch network of the zoo.

    `name` is the name in tables, its variant included; `base` and `family` belong to the network without it.
    """

    name: str
    base: str
    family: str
    path: Path | None = None
    variant: str = ""

    @property
    def is_onnx(self) -> bool:
        """True if the model is an ONNX file."""
        return self.path is not None and self.path.suffix == ".onnx"

    @property
    def language(self) -> str:
        """The graph language of its variant, else of its file."""
        return variant_language(self.variant) or ("onnx" if self.is_onnx else "aten")


def source_of(model: str) -> ModelSource:
    """The file or zoo network that `model` names.

    Raises `ContentError` for a file that is not there, `UnknownNameError` for a name the zoo does not have or a
    variant that does not exist, `UsageError` for a variant that this kind of file cannot have.
    """
    base, variant = split_variant(model)
    ending = f"@{variant}" if variant else ""
    path = Path(base)
    file: Path | None
    if path.suffix in SUFFIXES:
        if _holds(path.is_dir):
            raise ContentError(f"is a folder, not {_A[path.suffix]} file", where=base, hint="name the file in it")
        if not _holds(path.is_file):
            raise ContentError("no such file", where=base)
        name, family, file = path.stem, path.stem, path
    elif path.suffix.lower() in _OTHERS:
        reason, hint = _OTHERS[path.suffix.lower()]
        raise ContentError(f"{reason}; an .onnx or a .pt2 file is needed", where=base, hint=hint)
    elif _holds(path.is_dir) and base not in models():
        raise ContentError("is a folder; an .onnx or a .pt2 file is needed", where=base, hint=_FOLDER_HINT)
    else:
        found = family_of(base)
        name, family, file = base, found.label(base), found.onnx_path(base)
    if variant_language(variant) == "aten" and file is not None:
        reason = "an ONNX file, and torch has no kernels for one" if file.suffix == ".onnx" else "traced as it is"
        raise UsageError(
            f"{base} has no variant {variant!r}: it is {reason}", hint="use a torch network of the zoo for this variant"
        )
    return ModelSource(name=f"{name}{ending}", base=name, family=family, path=file, variant=variant)


def _holds(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:  # a name that is too long for a file
        return False


def language_obstacle(source: ModelSource, language: str) -> str:
    """The reason why graphs of `language` cannot express a model; empty where they may."""
    if source.variant and source.language != language:
        return f"the variant {source.variant!r} is for other targets"
    if source.is_onnx and language == "aten":
        return "an ONNX file, and torch has no kernels for one"
    return ""


def variants_of(model: str) -> tuple[str, ...]:
    """The variants of a zoo network; an ONNX file has no torch variants."""
    torch = family_of(model).onnx_path(model) is None
    return tuple(variant for variant in VARIANTS if torch or variant_language(variant) == "onnx")


def zoo_sizes(dimensions: Mapping[str, int]) -> tuple[int | None, int | None]:
    """Batch and size of a zoo network, None for the default. Raises `UsageError` for other dimensions."""
    for name in dimensions:
        if name not in _ZOO_DIMENSIONS:
            raise UsageError(f"a network of the zoo has no dimension {name!r}", hint="it has: batch, size")
    return dimensions.get("batch"), dimensions.get("size")


def split_variant(name: str) -> tuple[str, str]:
    """The base name and the variant of `NAME@VARIANT`; the variant is empty where there is none.

    An `@` inside a path belongs to the path. Raises `UnknownNameError` for a variant that does not exist.
    """
    base, at, variant = name.rpartition("@")
    if not at or "/" in variant or "\\" in variant or variant.endswith((*SUFFIXES, *_OTHERS)):
        return name, ""
    if not base:
        raise UsageError(f"{name!r} names no network before the @", hint="write it like bert-base@int8-dynamic")
    if variant not in VARIANTS:
        raise unknown_name("variant of a network", variant, VARIANTS)
    return base, variant


def variant_language(variant: str) -> str:
    """The graph language of a variant, `onnx` or `aten`; empty without a variant."""
    return "" if not variant else "onnx" if variant in INT8 else "aten"


def is_bf16(variant: str) -> bool:
    """True if weights and floating inputs are bfloat16."""
    return variant.startswith("bf16")


def is_training(variant: str) -> bool:
    """True if a call is a whole training step instead of a forward pass."""
    return variant.endswith("training")
