"""A recommender that adds a linear model to a multilayer perceptron (Cheng et al., 2016).

Categorical fields go through embeddings, crossed features straight to the output.
"""

import itertools
from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

# Rows and width of every embedding table, width of the wide input, widths of the deep layers.
_SHAPES = {"wide-and-deep-tiny": (100, 8, 32, (16, 8)), "wide-and-deep": (20_000, 32, 1024, (1024, 512, 256))}
_NUMBERS = 13


def construct(model: str, batch: int, size: int) -> "Network":
    """The network; crossed features, numbers and categorical fields of a batch."""
    import torch
    from torch import nn

    rows, width, crossed, layers = _SHAPES[model]

    class WideNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(crossed, 1)
            self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(size))
            sizes = (size * width + _NUMBERS, *layers)
            parts: list[nn.Module] = []
            for inputs, outputs in itertools.pairwise(sizes):
                parts += [nn.Linear(inputs, outputs), nn.ReLU()]
            self.deep = nn.Sequential(*parts, nn.Linear(sizes[-1], 1))

        def forward(self, crosses: torch.Tensor, numbers: torch.Tensor, fields: torch.Tensor) -> torch.Tensor:
            parts = [table(fields[:, index]) for index, table in enumerate(self.tables)]
            deep = self.deep(torch.cat([numbers, *parts], dim=1))
            return torch.sigmoid(self.wide(crosses) + deep)

    inputs = (torch.rand(batch, crossed), torch.randn(batch, _NUMBERS), torch.randint(rows, (batch, size)))
    return WideNetwork(), inputs


FAMILY = Family(
    name="wide-and-deep",
    # The size is the number of categorical fields.
    sizes={"wide-and-deep-tiny": 4, "wide-and-deep": 26},
    small=("wide-and-deep-tiny",),
    default_batch=128,
    construct=construct,
)
