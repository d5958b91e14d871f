"""Stages wired like a random graph, after RandWire (Xie et al., 2019): Watts–Strogatz, four neighbours, p = 0.75.

Every node sums what it reads, then applies ReLU and a separable convolution.
"""

import random
from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    import torch

    from opmark.models.family import Network

# Nodes per stage and channels of each stage.
_SHAPES = {"rand-wire-tiny": (5, (8, 16)), "rand-wire": (16, (48, 96, 192))}


def construct(model: str, batch: int, size: int) -> "Network":
    """The classifier and a batch of square images."""
    import torch
    from torch import nn

    from opmark.models.zoo._shared.blocks import classifier, conv_norm_relu, separable

    class Stage(nn.Module):
        def __init__(self, nodes: int, channels: int, width: int, seed: int) -> None:
            super().__init__()
            self.sources = wiring(nodes, seed)
            self.nodes = nn.ModuleList(
                separable(width if sources else channels, width, stride=1 if sources else 2) for sources in self.sources
            )
            read = {source for sources in self.sources for source in sources}
            self.ends = [node for node in range(nodes) if node not in read]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: list[torch.Tensor] = []
            for sources, node in zip(self.sources, self.nodes, strict=True):
                made.append(node(_sum([made[source] for source in sources]) if sources else x))
            return _sum([made[end] for end in self.ends]) / len(self.ends)

    nodes, widths = _SHAPES[model]
    channels = widths[0] // 2
    layers: list[nn.Module] = [conv_norm_relu(3, channels, 3, stride=2)]
    for seed, width in enumerate(widths):
        layers.append(Stage(nodes, channels, width, seed))
        channels = width
    return nn.Sequential(*layers, classifier(channels)), (torch.randn(batch, 3, size, size),)


def wiring(nodes: int, seed: int) -> list[tuple[int, ...]]:
    """The sources of each node: a ring of four neighbours, each edge moved with probability 0.75, acyclic by order."""
    draw = random.Random(seed)
    edges = set()
    for node in range(nodes):
        for step in (1, 2):
            other = (node + step) % nodes
            if draw.random() < 0.75:
                other = draw.choice([item for item in range(nodes) if item != node])
            edges.add((min(node, other), max(node, other)))
    return [tuple(sorted(source for source, target in edges if target == node)) for node in range(nodes)]


def _sum(tensors: "list[torch.Tensor]") -> "torch.Tensor":
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


FAMILY = Family(
    name="rand-wire",
    sizes={"rand-wire-tiny": 32, "rand-wire": 160},
    small=("rand-wire-tiny",),
    construct=construct,
)
