"""DINOv2 (Oquab et al., 2024)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "dinov2-mini": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 3},
    "dinov2-small": {"hidden_size": 384, "num_attention_heads": 6},
    "dinov2-base": {},
}


class Dinov2(_transformers.Configured):
    """A Vision Transformer over patches of 14 × 14 with scaled residual branches."""

    name = "dinov2"
    sizes: ClassVar = {"dinov2-mini": 112, "dinov2-small": 224, "dinov2-base": 224}
    small: ClassVar = ("dinov2-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("Dinov2", config), _transformers.images(batch, size)


FAMILY = Dinov2()
