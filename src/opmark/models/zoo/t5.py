"""T5 (Raffel et al., 2020), encoder and decoder."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "t5-mini": {"d_model": 256, "d_ff": 1024, "num_layers": 2, "num_heads": 4, "vocab_size": 8000},
    "t5-small": {"vocab_size": 32_128},
}


class T5(_transformers.Configured):
    """Relative position biases, RMS normalisation, unscaled attention."""

    name = "t5"
    # The size is the length of both sequences.
    sizes: ClassVar = {"t5-mini": 32, "t5-small": 64}
    small: ClassVar = ("t5-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network, and a batch of source and of target sequences."""
        config = {"use_cache": False, **_CONFIGURATIONS[model]}
        network = _transformers.build("T5", config, inputs=("input_ids", "decoder_input_ids"))
        source, target = (_transformers.tokens(config["vocab_size"], batch, size) for _ in range(2))
        return network, source + target


FAMILY = T5()
