"""GPT-2 (Radford et al., 2019), the stack without the language-model head."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS = {
    "gpt2-tiny": {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 500},
    "gpt2": {"vocab_size": 50_257},
}


class Gpt2(_transformers.Configured):
    """Twelve layers of width 768 in the smallest published size."""

    name = "gpt2"
    sizes: ClassVar = {"gpt2-tiny": 16, "gpt2": 128}
    small: ClassVar = ("gpt2-tiny",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The stack and a batch of token sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        return _transformers.build("GPT2", config), _transformers.tokens(config["vocab_size"], batch, size)


FAMILY = Gpt2()
