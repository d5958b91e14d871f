"""Gemma (Mesnard et al., 2024): a block at the width of the 2-billion model."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "gemma-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "intermediate_size": 2048,
        "vocab_size": 8000,
        "head_dim": 128,
    },
    "gemma-block": {
        "hidden_size": 2048,
        "num_hidden_layers": 1,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "intermediate_size": 16_384,
        "vocab_size": 8000,
    },
}


class Gemma(_transformers.Configured):
    """Every query head shares one key head, and the gated perceptron is eight times as wide as the layer."""

    name = "gemma"
    sizes: ClassVar = {"gemma-mini": 64, "gemma-block": 64}
    small: ClassVar = ("gemma-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The block and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Gemma", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Gemma()
