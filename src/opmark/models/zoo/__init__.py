"""Networks by name, built by configuration: nothing is downloaded. A family is a file here or an entry of a table."""

from functools import cache

from opmark.core.errors import UsageError
from opmark.core.registry import Registry, unknown_name
from opmark.models.family import Built, Family
from opmark.models.zoo._configured import CONFIGURED
from opmark.models.zoo._shared.held_out import HELD_OUT

TABLE = {entry.name: entry.family() for entry in CONFIGURED}
FAMILIES: Registry[Family] = Registry("opmark.models.zoo", "FAMILY", "network family")


@cache
def models() -> dict[str, Family]:
    """Every model name of the zoo with its family; torch is not imported."""
    return {model: family for family in FAMILIES for model in family.names}


def family_of(model: str) -> Family:
    """The family that has `model`. Raises `UnknownNameError` with the nearest name."""
    known = models()
    if model not in known:
        raise unknown_name("network", model, known)
    return known[model]


def held_out(model: str) -> bool:
    """True if nothing is learned from the family of `model`. Raises as `family_of` does."""
    return family_of(model).label(model) in HELD_OUT


def build(model: str, *, batch: int | None = None, size: int | None = None, weights: bool = True) -> Built:
    """The network called `model` in evaluation mode, and inputs for one call; the same on every run.

    Without `weights` their values are whatever was in memory, which is quicker and enough for a trace.
    Raises `UnknownNameError`, and `UsageError` for an impossible batch or size and for a model that is only an ONNX
    file.
    """
    family = family_of(model)
    batch = family.default_batch if batch is None else batch
    size = family.sizes[model] if size is None else size
    for noun, value in (("batch", batch), ("size", size)):
        if value < 1:
            raise UsageError(f"a {noun} of {value} is not possible", hint=f"give a {noun} of at least 1")

    import torch

    from opmark.models.zoo._shared.weights import sane_weights, without_initialisation

    with torch.random.fork_rng(devices=[]), without_initialisation():
        torch.manual_seed(0)
        module, inputs = family.construct(model, batch, size)
    module.eval().requires_grad_(False)
    if weights:
        sane_weights(module)
    return Built(module=module, inputs=inputs)
