"""DeBERTa-v3 (He et al., 2023), which transformers keeps under DeBERTa-v2."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "deberta-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "vocab_size": 8000,
    },
    "deberta-v3-xsmall": {
        "hidden_size": 384,
        "num_hidden_layers": 12,
        "num_attention_heads": 6,
        "intermediate_size": 1536,
        "vocab_size": 128_100,
    },
}
_ATTENTION: dict[str, object] = {
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "max_relative_positions": -1,
    "type_vocab_size": 0,
}


class DebertaV2(_transformers.Configured):
    """Attention that adds content-to-position and position-to-content scores."""

    name = "deberta-v2"
    sizes: ClassVar = {"deberta-mini": 64, "deberta-v3-xsmall": 128}
    small: ClassVar = ("deberta-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The encoder and a batch of token sequences."""
        config = _CONFIGURATIONS[model]
        network = _transformers.build("DebertaV2", {**_ATTENTION, **config})
        return network, _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = DebertaV2()
