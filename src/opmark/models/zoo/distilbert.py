"""DistilBERT (Sanh et al., 2019)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "distilbert-mini": {"dim": 256, "n_layers": 3, "n_heads": 4, "hidden_dim": 1024, "vocab_size": 8000},
    "distilbert-base": {"vocab_size": 30_522},
}


class Distilbert(_transformers.Configured):
    """Half of BERT's layers, no pooler."""

    name = "distilbert"
    sizes: ClassVar = {"distilbert-mini": 64, "distilbert-base": 128}
    small: ClassVar = ("distilbert-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder and a batch of token sequences."""
        config = _CONFIGURATIONS[model]
        return _transformers.build("DistilBert", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Distilbert()
