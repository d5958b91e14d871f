"""Branching image classifiers in the manner of GoogLeNet (Szegedy et al., 2015) with batch normalisation.

A stem, then stages of four-branch blocks whose outputs are joined along channels.
"""

from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

# Per stage, per block: channels of the 1×1, 3×3 (reduced, out), double 3×3 (reduced, out) and pooled branch.
_STAGES = {
    "inception-tiny": [[(16, 16, 24, 8, 16, 16)], [(32, 24, 48, 8, 24, 24)]],
    "inception-small": [
        [(32, 48, 64, 8, 16, 16), (64, 64, 96, 16, 48, 32)],
        [(96, 48, 104, 8, 24, 32), (80, 56, 112, 12, 32, 32), (64, 64, 128, 12, 32, 32)],
        [(128, 80, 160, 16, 64, 64), (192, 96, 192, 24, 64, 64)],
    ],
    "inception": [
        [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)],
        [
            (192, 96, 208, 16, 48, 64),
            (160, 112, 224, 24, 64, 64),
            (128, 128, 256, 24, 64, 64),
            (112, 144, 288, 32, 64, 64),
            (256, 160, 320, 32, 128, 128),
        ],
        [(256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)],
    ],
}


def construct(model: str, batch: int, size: int) -> "Network":
    """The classifier and a batch of square images."""
    import torch
    from torch import nn

    from opmark.models.zoo._shared.blocks import conv_norm_relu as unit

    class InceptionBlock(nn.Module):
        def __init__(self, channels: int, sizes: tuple[int, ...]) -> None:
            super().__init__()
            one, three_in, three, five_in, five, pooled = sizes
            self.one = unit(channels, one, 1)
            self.three = nn.Sequential(unit(channels, three_in, 1), unit(three_in, three, 3))
            self.five = nn.Sequential(unit(channels, five_in, 1), unit(five_in, five, 3), unit(five, five, 3))
            self.pool = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), unit(channels, pooled, 1))
            self.channels = one + three + five + pooled

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], dim=1)

    stages = _STAGES[model]
    width = 16 if model == "inception-tiny" else 64
    layers: list[nn.Module] = [
        unit(3, width, 7, stride=2),
        nn.MaxPool2d(3, stride=2, padding=1),
        unit(width, width, 1),
        unit(width, 3 * width, 3),
    ]
    channels = 3 * width
    for blocks in stages:
        layers.append(nn.MaxPool2d(3, stride=2, padding=1))
        for sizes in blocks:
            block = InceptionBlock(channels, sizes)
            layers.append(block)
            channels = block.channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    return nn.Sequential(*layers), (torch.randn(batch, 3, size, size),)


FAMILY = Family(
    name="inception",
    sizes={"inception-tiny": 64, "inception-small": 160, "inception": 224},
    small=("inception-tiny",),
    construct=construct,
)
