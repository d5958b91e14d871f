"""Phi-1.5 (Li et al., 2023): blocks at the width of the 1.3-billion model."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "phi-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "vocab_size": 8000,
    },
    "phi-block": {
        "hidden_size": 2048,
        "num_hidden_layers": 2,
        "num_attention_heads": 32,
        "intermediate_size": 8192,
        "vocab_size": 8000,
    },
}


class Phi(_transformers.Configured):
    """Attention and perceptron read the same normalised tensor; half of every head is rotated."""

    name = "phi"
    sizes: ClassVar = {"phi-mini": 64, "phi-block": 64}
    small: ClassVar = ("phi-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The blocks and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Phi", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Phi()
