"""The interface of a network family; one file, or one entry of the table, in `opmark.models.zoo` per family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from opmark.core.errors import UsageError

if TYPE_CHECKING:
    import torch

    Network = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A module in evaluation mode and the example inputs of one call, in order."""

    module: "torch.nn.Module"
    inputs: "tuple[torch.Tensor, ...]"


def _refuse(model: str, batch: int, size: int) -> "Network":
    del batch, size
    raise UsageError(f"{model!r} is an ONNX file and has no torch module", hint="use an onnxruntime target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Networks that share a design.

    `sizes` maps each model name, unique in the zoo, to its default size: the image's side in pixels or the sequence
    length in tokens. `construct` takes a model, a batch and a size and gives the module and its inputs; the caller sets
    evaluation mode and sane weights. `labels` holds what released tables call a model where that is not the family's
    name; `small` names the models that a test can build and trace. A family of ONNX files has `onnx_file`, which raises
    `MissingExtraError` where the package that ships them is not installed.
    Of a `sealed` family nothing is learned, and no error is looked at before the end.
    """

    name: str
    sizes: Mapping[str, int]
    construct: "Callable[[str, int, int], Network]" = _refuse
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    small: tuple[str, ...] = ()
    default_batch: int = 1
    # What must be installed to make the models.
    packages: tuple[str, ...] = ("torch",)
    onnx_file: Callable[[str], Path] | None = None
    # The entry of the table that the family is made from; None where it has a file of its own.
    entry: object = None
    sealed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.sizes)

    def label(self, model: str) -> str:
        """The family name that splits and tables use for `model`."""
        return self.labels.get(model, self.name)

    def onnx_path(self, model: str) -> Path | None:
        """The ONNX file of a model that has no torch module, else None."""
        return None if self.onnx_file is None else self.onnx_file(model)
