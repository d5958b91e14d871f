"""MobileViT (Mehta and Rastegari, 2022)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "mobilevit-xx-small": {
        "hidden_sizes": [64, 80, 96],
        "neck_hidden_sizes": [16, 16, 24, 48, 64, 80, 320],
        "expand_ratio": 2.0,
    },
    "mobilevit-small": {},
}


class Mobilevit(_transformers.Configured):
    """Inverted residuals, and transformers over unfolded patches of the feature maps."""

    name = "mobilevit"
    sizes: ClassVar = {"mobilevit-xx-small": 256, "mobilevit-small": 256}
    small: ClassVar = ("mobilevit-xx-small",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network with its pooling and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("MobileViT", config), _transformers.images(batch, size)


FAMILY = Mobilevit()
