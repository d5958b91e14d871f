"""What may stand behind `@` in a model's name: the same network in another element type, or trained."""

from opmark.core.errors import UsageError
from opmark.core.registry import unknown_name

INT8 = ("int8-dynamic", "int8-static")
TORCH = ("bf16", "training", "bf16-training")
VARIANTS = (*INT8, *TORCH)


def split_variant(name: str) -> tuple[str, str]:
    """The base name and the variant of `NAME@VARIANT`; the variant is empty where there is none.

    An `@` inside a path belongs to the path. Raises `UnknownNameError` for a variant that does not exist.
    """
    base, at, variant = name.rpartition("@")
    if not at or "/" in variant or "\\" in variant or variant.endswith((".onnx", ".pt2")):
        return name, ""
    if not base:
        raise UsageError(f"{name!r} names no network before the @", hint="write it like bert-base@int8-dynamic")
    if variant not in VARIANTS:
        raise unknown_name("variant of a network", variant, VARIANTS)
    return base, variant


def variant_language(variant: str) -> str:
    """The graph language that a variant exists in, `onnx` or `aten`; empty for the network as it is."""
    return "" if not variant else "onnx" if variant in INT8 else "aten"


def is_bf16(variant: str) -> bool:
    """Whether weights and floating inputs are bfloat16."""
    return variant.startswith("bf16")


def is_training(variant: str) -> bool:
    """Whether a call is a whole training step instead of a forward pass."""
    return variant.endswith("training")
