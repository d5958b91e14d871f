"""Qwen2 (Yang et al., 2024): blocks at the width of the half-billion model."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "qwen2-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 768,
        "vocab_size": 8000,
    },
    "qwen2-block": {
        "hidden_size": 896,
        "num_hidden_layers": 2,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "intermediate_size": 4864,
        "vocab_size": 8000,
    },
}


class Qwen2(_transformers.Configured):
    """Rotary positions, biased query, key and value, seven query heads to a key head."""

    name = "qwen2"
    sizes: ClassVar = {"qwen2-mini": 64, "qwen2-block": 64}
    small: ClassVar = ("qwen2-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The blocks and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Qwen2", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Qwen2()
