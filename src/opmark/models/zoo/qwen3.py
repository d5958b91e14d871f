"""Qwen3 (Yang et al., 2025): blocks at the width of the 0.6-billion model."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "qwen3-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 768,
        "vocab_size": 8000,
        "head_dim": 96,
    },
    "qwen3-block": {
        "hidden_size": 1024,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "vocab_size": 8000,
    },
}


class Qwen3(_transformers.Configured):
    """Queries and keys are normalised per head, and heads together are wider than the layer."""

    name = "qwen3"
    sizes: ClassVar = {"qwen3-mini": 64, "qwen3-block": 64}
    small: ClassVar = ("qwen3-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The blocks and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Qwen3", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Qwen3()
