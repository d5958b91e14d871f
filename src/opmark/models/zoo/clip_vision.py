"""The image encoder of CLIP (Radford et al., 2021)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "clip-vision-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "patch_size": 16,
    },
    "clip-vit-base-patch32": {},
}


class ClipVision(_transformers.Configured):
    """A pre-norm Vision Transformer over patches of 32 × 32 with sigmoid-weighted linear units."""

    name = "clip-vision"
    sizes: ClassVar = {"clip-vision-mini": 160, "clip-vit-base-patch32": 224}
    small: ClassVar = ("clip-vision-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder with its pooler and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("CLIPVision", config), _transformers.images(batch, size)


FAMILY = ClipVision()
