"""RoBERTa (Liu et al., 2019)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "roberta-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "vocab_size": 8000,
    },
    "roberta-base": {"vocab_size": 50_265},
}


class Roberta(_transformers.Configured):
    """BERT whose positions are counted from the tokens that are not padding."""

    name = "roberta"
    sizes: ClassVar = {"roberta-mini": 64, "roberta-base": 128}
    small: ClassVar = ("roberta-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder with its pooler and a batch of token sequences."""
        config = {"use_cache": False, "max_position_embeddings": 514, "type_vocab_size": 1, **_CONFIGURATIONS[model]}
        return _transformers.build("Roberta", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Roberta()
