"""Residual layers of parallel experts weighted by a gate; every expert runs, so the graph is static and wide.

The dense mixture of Jacobs et al. (1991) inside a residual stack.
"""

from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

# Layers, experts, width, width inside an expert.
_SHAPES = {"mixture-of-experts-tiny": (1, 3, 16, 32), "mixture-of-experts": (4, 8, 256, 1024)}


def construct(model: str, batch: int, size: int) -> "Network":
    """The stack and a batch of token vectors."""
    import torch
    from torch import nn

    layers, experts, width, inner = _SHAPES[model]

    class ExpertLayer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.gate = nn.Linear(width, experts)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)) for _ in range(experts)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.norm(x)
            weights = torch.softmax(self.gate(y), dim=-1)
            for index, expert in enumerate(self.experts):
                x = x + expert(y) * weights[..., index : index + 1]
            return x

    return nn.Sequential(*(ExpertLayer() for _ in range(layers))), (torch.randn(batch, size, width),)


FAMILY = Family(
    name="mixture-of-experts",
    # The size is the number of tokens.
    sizes={"mixture-of-experts-tiny": 8, "mixture-of-experts": 64},
    small=("mixture-of-experts-tiny",),
    construct=construct,
)
