"""The Swin Transformer (Liu et al., 2021): attention inside shifted windows."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "swin-mini": {"embed_dim": 24, "depths": [1, 2], "num_heads": [2, 4]},
    "swin-tiny": {},
}


class Swin(_transformers.Configured):
    """Four stages; attention is written out, since transformers' fused path cannot be exported."""

    name = "swin"
    sizes: ClassVar = {"swin-mini": 56, "swin-tiny": 224}
    small: ClassVar = ("swin-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network with its pooling and a batch of square images."""
        config = {"image_size": size, "attn_implementation": "eager", **_CONFIGURATIONS[model]}
        return _transformers.build("Swin", config), _transformers.images(batch, size)


FAMILY = Swin()
