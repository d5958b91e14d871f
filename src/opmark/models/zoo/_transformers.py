"""What every network from transformers shares: built from a configuration, offline, returning one tensor."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opmark.core.registry import require

if TYPE_CHECKING:
    import torch


def build(name: str, config: dict[str, Any]) -> "torch.nn.Module":
    """`{name}Model` of `{name}Config(**config)`, wrapped so that it takes its main input and returns one tensor.

    Raises `MissingExtraError` where transformers is not installed.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    require("transformers")
    import transformers
    from transformers.initialization import no_init_weights

    with no_init_weights():
        network = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**config))
    return _wrapped(network)


def tokens(vocabulary: int, batch: int, size: int) -> "tuple[torch.Tensor, ...]":
    """A batch of token sequences."""
    import torch

    return (torch.randint(vocabulary, (batch, size)),)


def images(batch: int, size: int) -> "tuple[torch.Tensor, ...]":
    """A batch of square images."""
    import torch

    return (torch.randn(batch, 3, size, size),)


def _wrapped(network: "Callable[..., Any]") -> "torch.nn.Module":
    import torch

    class OneTensor(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.network(x, return_dict=False)[0]
            return result

    return OneTensor()
