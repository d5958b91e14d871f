"""ALBERT (Lan et al., 2020)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "albert-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "vocab_size": 8000,
        "embedding_size": 64,
    },
    "albert-base": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30_000},
}


class Albert(_transformers.Configured):
    """One layer applied again and again; embeddings are narrower than layers."""

    name = "albert"
    sizes: ClassVar = {"albert-mini": 64, "albert-base": 128}
    small: ClassVar = ("albert-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder with its pooler and a batch of token sequences."""
        config = _CONFIGURATIONS[model]
        return _transformers.build("Albert", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Albert()
