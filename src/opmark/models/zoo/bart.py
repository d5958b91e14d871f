"""BART (Lewis et al., 2020), encoder and decoder."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "bart-mini": {
        "d_model": 256,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 1024,
        "decoder_ffn_dim": 1024,
        "vocab_size": 8000,
    },
    "bart-base": {
        "d_model": 768,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "encoder_attention_heads": 12,
        "decoder_attention_heads": 12,
        "encoder_ffn_dim": 3072,
        "decoder_ffn_dim": 3072,
        "vocab_size": 50_265,
    },
}


class Bart(_transformers.Configured):
    """Six and six post-norm layers of width 768 in the base size."""

    name = "bart"
    # The size is the length of both sequences.
    sizes: ClassVar = {"bart-mini": 32, "bart-base": 64}
    small: ClassVar = ("bart-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network, and a batch of source and of target sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        network = _transformers.build("Bart", config, inputs=("input_ids", "decoder_input_ids"))
        source, target = (_transformers.tokens(config["vocab_size"], batch, size) for _ in range(2))
        return network, source + target


FAMILY = Bart()
