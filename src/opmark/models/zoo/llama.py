"""Llama (Touvron et al., 2023): blocks at the width of the 1-billion model, with grouped key and value heads."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS = {
    "llama-tiny": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 500,
    },
    "llama-block": {
        "hidden_size": 2048,
        "num_hidden_layers": 2,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        # A full vocabulary would add half a gigabyte of table of which one call reads a few rows.
        "vocab_size": 8000,
    },
}


class Llama(_transformers.Configured):
    """Two blocks with rotary positions, RMS normalisation and a gated perceptron."""

    name = "llama"
    sizes: ClassVar = {"llama-tiny": 16, "llama-block": 64}
    small: ClassVar = ("llama-tiny",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The blocks and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Llama", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Llama()
