"""ConvNeXt V2 (Woo et al., 2023)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "convnextv2-atto": {"hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2]},
    "convnextv2-tiny": {},
}


class Convnextv2(_transformers.Configured):
    """ConvNeXt with global response normalisation inside its perceptrons."""

    name = "convnextv2"
    sizes: ClassVar = {"convnextv2-atto": 160, "convnextv2-tiny": 224}
    small: ClassVar = ("convnextv2-atto",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network with its pooling and a batch of square images."""
        return _transformers.build("ConvNextV2", _CONFIGURATIONS[model]), _transformers.images(batch, size)


FAMILY = Convnextv2()
