"""Cells of parallel separable convolutions that read the two cells before them, after NASNet (Zoph et al., 2018).

Three stages of cells; every cell joins five pairs of branches.
"""

from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

# Cells per stage and the first stage's width.
_SHAPES = {"nasnet-like-tiny": (1, 8), "nasnet-like": (3, 32)}


def construct(model: str, batch: int, size: int) -> "Network":
    """The classifier and a batch of square images."""
    import torch
    from torch import nn

    from opmark.models.zoo._shared.blocks import classifier, conv_norm_relu, separable

    class NasnetCell(nn.Module):
        def __init__(self, before: int, channels: int, width: int, shrink: bool, reduced: bool) -> None:
            super().__init__()
            stride = 2 if shrink else 1
            # The cell two back still has the size from before the last reduction.
            self.older = conv_norm_relu(before, width, 1, stride=2 if reduced else 1)
            self.newer = conv_norm_relu(channels, width, 1)
            sizes = (3, 5, 5, 3, 3)
            self.parts = nn.ModuleList([separable(width, width, size, stride=stride) for size in sizes])
            self.mean = nn.AvgPool2d(3, stride=stride, padding=1)
            self.largest = nn.MaxPool2d(3, stride=stride, padding=1)
            self.channels = 4 * width

        def forward(self, older: torch.Tensor, newer: torch.Tensor) -> torch.Tensor:
            older, newer = self.older(older), self.newer(newer)
            return torch.cat(
                [
                    self.parts[0](newer) + self.largest(newer),
                    self.parts[1](newer) + self.parts[2](older),
                    self.mean(newer) + self.mean(older),
                    self.parts[3](older) + self.parts[4](older),
                ],
                dim=1,
            )

    class NasnetNetwork(nn.Module):
        def __init__(self, cells: int, width: int) -> None:
            super().__init__()
            self.stem = conv_norm_relu(3, width, 3, stride=2)
            parts: list[NasnetCell] = []
            before = channels = width
            reduced = False
            for stage in range(3):
                for index in range(cells):
                    shrink = stage > 0 and index == 0
                    parts.append(NasnetCell(before, channels, width * 2**stage, shrink, reduced))
                    before, channels, reduced = channels, parts[-1].channels, shrink
            self.cells = nn.ModuleList(parts)
            self.head = classifier(channels)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            older = newer = self.stem(x)
            for cell in self.cells:
                older, newer = newer, cell(older, newer)
            result: torch.Tensor = self.head(newer)
            return result

    return NasnetNetwork(*_SHAPES[model]), (torch.randn(batch, 3, size, size),)


FAMILY = Family(
    name="nasnet-like",
    sizes={"nasnet-like-tiny": 32, "nasnet-like": 160},
    small=("nasnet-like-tiny",),
    construct=construct,
)
