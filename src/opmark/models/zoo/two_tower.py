"""A retrieval network of two towers, one for users and one for items, that meet in a dot product.

Embeddings of categorical fields, a multilayer perceptron per tower, one score per row.
"""

import itertools
from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

# Rows of every embedding table, its width, and the widths of a tower's layers.
_SHAPES = {"two-tower-tiny": (100, 8, (16, 8)), "two-tower": (50_000, 64, (1024, 512, 128))}
_FIELDS = {"user": 8, "item": 5}


def construct(model: str, batch: int, size: int) -> "Network":
    """The scorer, and the fields of `batch` users and of `size` items for each."""
    import torch
    from torch import nn

    rows, width, layers = _SHAPES[model]

    class Tower(nn.Module):
        def __init__(self, fields: int) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(fields))
            sizes = (fields * width, *layers)
            parts: list[nn.Module] = []
            for inputs, outputs in itertools.pairwise(sizes):
                parts += [nn.Linear(inputs, outputs), nn.ReLU()]
            self.layers = nn.Sequential(*parts[:-1])

        def forward(self, fields: torch.Tensor) -> torch.Tensor:
            parts = [table(fields[..., index]) for index, table in enumerate(self.tables)]
            result: torch.Tensor = self.layers(torch.cat(parts, dim=-1))
            return result

    class TowerNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.user = Tower(_FIELDS["user"])
            self.item = Tower(_FIELDS["item"])

        def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
            scores = self.item(item) @ self.user(user).unsqueeze(-1)
            return torch.sigmoid(scores.squeeze(-1))

    user = torch.randint(rows, (batch, _FIELDS["user"]))
    item = torch.randint(rows, (batch, size, _FIELDS["item"]))
    return TowerNetwork(), (user, item)


FAMILY = Family(
    name="two-tower",
    # The size is the number of items scored for each user.
    sizes={"two-tower-tiny": 2, "two-tower": 16},
    small=("two-tower-tiny",),
    default_batch=16,
    construct=construct,
)
