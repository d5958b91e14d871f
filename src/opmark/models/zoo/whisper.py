"""Whisper (Radford et al., 2023), encoder and decoder."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, int]] = {
    "whisper-mini": {
        "d_model": 192,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 768,
        "decoder_ffn_dim": 768,
        "vocab_size": 8000,
        "pad_token_id": 0,
    },
    "whisper-tiny": {
        "d_model": 384,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "encoder_attention_heads": 6,
        "decoder_attention_heads": 6,
        "encoder_ffn_dim": 1536,
        "decoder_ffn_dim": 1536,
        "vocab_size": 51_865,
    },
}
_MEL_BANDS = 80
_TEXT = 32


class Whisper(_transformers.Configured):
    """Two convolutions and an encoder over a spectrogram, a decoder over text."""

    name = "whisper"
    # The size is the number of frames of the spectrogram; text has 32 tokens.
    sizes: ClassVar = {"whisper-mini": 400, "whisper-tiny": 3000}
    small: ClassVar = ("whisper-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network, and a batch of spectrograms and of token sequences."""
        import torch

        # The first convolutions halve the frames.
        config = {"use_cache": False, "max_source_positions": (size + 1) // 2, **_CONFIGURATIONS[model]}
        network = _transformers.build("Whisper", config, inputs=("input_features", "decoder_input_ids"))
        sound = torch.randn(batch, _MEL_BANDS, size)
        return network, (sound, *_transformers.tokens(config["vocab_size"], batch, _TEXT))


FAMILY = Whisper()
