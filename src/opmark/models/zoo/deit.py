"""DeiT (Touvron et al., 2021): Vision Transformers of three widths with a distillation token."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "deit-tiny": {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768},
    "deit-small": {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
    "deit-base": {},
}


class Deit(_transformers.Configured):
    """Twelve layers over patches of 16 × 16."""

    name = "deit"
    sizes: ClassVar = {"deit-tiny": 224, "deit-small": 224, "deit-base": 224}
    small: ClassVar = ("deit-tiny",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder with its pooler and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("DeiT", config), _transformers.images(batch, size)


FAMILY = Deit()
