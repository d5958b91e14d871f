"""The Vision Transformer (Dosovitskiy et al., 2021) with patches of 16 × 16."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "vit-tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128},
    "vit-base": {},
}


class Vit(_transformers.Configured):
    """Twelve layers of width 768 in the base size."""

    name = "vit"
    sizes: ClassVar = {"vit-tiny": 64, "vit-base": 224}
    small: ClassVar = ("vit-tiny",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder with its pooler and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("ViT", config), _transformers.images(batch, size)


FAMILY = Vit()
