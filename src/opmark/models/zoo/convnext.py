"""ConvNeXt (Liu et al., 2022)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "convnext-mini": {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
    "convnext-tiny": {},
}


class Convnext(_transformers.Configured):
    """Large depthwise convolutions between channels-last perceptrons."""

    name = "convnext"
    sizes: ClassVar = {"convnext-mini": 64, "convnext-tiny": 224}
    small: ClassVar = ("convnext-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network with its pooling and a batch of square images."""
        return _transformers.build("ConvNext", _CONFIGURATIONS[model]), _transformers.images(batch, size)


FAMILY = Convnext()
