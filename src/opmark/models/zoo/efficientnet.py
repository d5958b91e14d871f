"""EfficientNet-B0 (Tan and Le, 2019)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch


class Efficientnet(_transformers.Configured):
    """Inverted residuals with squeeze-and-excitation; transformers' defaults are B7's, so B0's are spelled out."""

    name = "efficientnet"
    sizes: ClassVar = {"efficientnet-b0": 224}
    small: ClassVar = ("efficientnet-b0",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network up to its pooling and a batch of square images."""
        del model
        config = {"image_size": size, "width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}
        return _transformers.build("EfficientNet", config), _transformers.images(batch, size)


FAMILY = Efficientnet()
