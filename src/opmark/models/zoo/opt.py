"""OPT (Zhang et al., 2022), the stack without the language-model head."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "opt-mini": {
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "ffn_dim": 1024,
        "word_embed_proj_dim": 256,
        "vocab_size": 8000,
    },
    "opt-125m": {"vocab_size": 50_272},
}


class Opt(_transformers.Configured):
    """Decoders with ReLU perceptrons."""

    name = "opt"
    sizes: ClassVar = {"opt-mini": 64, "opt-125m": 128}
    small: ClassVar = ("opt-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The stack and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("OPT", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Opt()
