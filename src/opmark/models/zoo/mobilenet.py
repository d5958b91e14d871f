"""MobileNetV2 (Sandler et al., 2018)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch


class Mobilenet(_transformers.Configured):
    """Inverted residuals of depthwise convolutions at full width."""

    name = "mobilenet"
    sizes: ClassVar = {"mobilenet-v2": 224}
    small: ClassVar = ("mobilenet-v2",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network up to its pooling and a batch of square images."""
        del model
        return _transformers.build("MobileNetV2", {"image_size": size}), _transformers.images(batch, size)


FAMILY = Mobilenet()
