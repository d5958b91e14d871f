"""Mistral (Jiang et al., 2023): a block at the width of the 7-billion model."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "mistral-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 768,
        "vocab_size": 8000,
    },
    "mistral-block": {
        "hidden_size": 4096,
        "num_hidden_layers": 1,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14_336,
        "vocab_size": 2000,
    },
}


class Mistral(_transformers.Configured):
    """Rotary positions, four query heads to a key head, attention that slides over 4096 tokens."""

    name = "mistral"
    sizes: ClassVar = {"mistral-mini": 64, "mistral-block": 64}
    small: ClassVar = ("mistral-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The block and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Mistral", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Mistral()
