"""BERT (Devlin et al., 2019), the encoder with its pooler."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS = {
    "bert-tiny": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 500,
    },
    "bert-base": {"vocab_size": 30_522},
}


class Bert(_transformers.Configured):
    """Twelve layers of width 768 in the base size."""

    name = "bert"
    sizes: ClassVar = {"bert-tiny": 16, "bert-base": 128}
    small: ClassVar = ("bert-tiny",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("Bert", config), _transformers.tokens(int(config["vocab_size"]), batch, size)


FAMILY = Bert()
