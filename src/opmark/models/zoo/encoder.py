"""Transformer stacks of our own: encoders, and decoders with a causal mask, attending over fused heads.

Pre-norm layers of self-attention and a GELU perceptron over token embeddings.
"""

from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

# Layers, width, heads.
_SHAPES = {
    "encoder-tiny": (1, 32, 2),
    "encoder-small": (4, 256, 4),
    "encoder-medium": (6, 512, 8),
    "decoder-tiny": (1, 32, 2),
    "decoder-small": (4, 384, 6),
}
_VOCABULARY = 8000


def construct(model: str, batch: int, size: int) -> "Network":
    """The stack and a batch of token sequences."""
    import torch
    from torch import nn
    from torch.nn import functional

    layers, width, heads = _SHAPES[model]
    causal = model.startswith("decoder")

    class EncoderAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inward = nn.Linear(width, 3 * width)
            self.outward = nn.Linear(width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows, length, _ = x.shape
            joined = self.inward(x).view(rows, length, 3, heads, width // heads)
            query, key, value = joined.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
            result: torch.Tensor = self.outward(mixed.transpose(1, 2).reshape(rows, length, width))
            return result

    class EncoderLayer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.LayerNorm(width)
            self.attention = EncoderAttention()
            self.second = nn.LayerNorm(width)
            self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.attention(self.first(x))
            result: torch.Tensor = x + self.perceptron(self.second(x))
            return result

    class EncoderStack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(_VOCABULARY, width)
            self.positions = nn.Parameter(torch.zeros(size, width))
            self.layers = nn.Sequential(*(EncoderLayer() for _ in range(layers)))
            self.norm = nn.LayerNorm(width)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.norm(self.layers(self.tokens(tokens) + self.positions))
            return result

    return EncoderStack(), (torch.randint(_VOCABULARY, (batch, size)),)


FAMILY = Family(
    name="encoder",
    sizes={
        "encoder-tiny": 8,
        "encoder-small": 64,
        "encoder-medium": 128,
        "decoder-tiny": 8,
        "decoder-small": 64,
    },
    labels={"decoder-tiny": "decoder", "decoder-small": "decoder"},
    small=("encoder-tiny", "decoder-tiny"),
    construct=construct,
)
