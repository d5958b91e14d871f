"""What a network family of the zoo must say about itself; one file of `opmark.models.zoo` per family."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from opmark.core.errors import UsageError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A module in evaluation mode and the example inputs of one call, in order."""

    module: "torch.nn.Module"
    inputs: "tuple[torch.Tensor, ...]"


class Family(ABC):
    """Networks that share a design. `sizes` maps each model name, unique in the zoo, to its default size.

    The size is the image's side in pixels or the sequence length in tokens.
    """

    name: ClassVar[str]
    sizes: ClassVar[Mapping[str, int]]
    # What each model is called in released tables where that differs from the family's name.
    labels: ClassVar[Mapping[str, str]] = {}
    # Models small enough to be built and traced within a test.
    small: ClassVar[tuple[str, ...]] = ()
    default_batch: ClassVar[int] = 1
    # What must be installed to make its models.
    packages: ClassVar[tuple[str, ...]] = ("torch",)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its models."""
        return tuple(self.sizes)

    def label(self, model: str) -> str:
        """The family that splits and tables know `model` by."""
        return self.labels.get(model, self.name)

    def onnx_path(self, model: str) -> Path | None:
        """The ONNX file of a model that has no torch module, else None."""
        del model
        return None

    @abstractmethod
    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The module and its inputs; the caller sets evaluation mode and sane weights."""


class OnnxFamily(Family):
    """Networks that exist as ONNX files only."""

    packages: ClassVar = ("onnx",)

    @abstractmethod
    def onnx_path(self, model: str) -> Path:
        """The file. Raises `MissingExtraError` if what ships it is not installed."""

    def construct(self, model: str, batch: int, size: int) -> Any:
        """Always refused. Raises `UsageError`."""
        del batch, size
        raise UsageError(f"{model!r} is an ONNX file and has no torch module", hint="use an onnxruntime target")
