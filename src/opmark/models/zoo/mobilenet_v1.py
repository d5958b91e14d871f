"""MobileNetV1 (Howard et al., 2017)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "mobilenet-v1-half": {"depth_multiplier": 0.5},
    "mobilenet-v1": {},
}


class MobilenetV1(_transformers.Configured):
    """Depthwise and pointwise convolutions without residuals, at full and at half width."""

    name = "mobilenet-v1"
    sizes: ClassVar = {"mobilenet-v1-half": 160, "mobilenet-v1": 224}
    small: ClassVar = ("mobilenet-v1-half",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network up to its pooling and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("MobileNetV1", config), _transformers.images(batch, size)


FAMILY = MobilenetV1()
