"""What every network from transformers shares: built from a configuration, offline, returning one tensor."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from opmark.core.registry import require
from opmark.models.family import Family

if TYPE_CHECKING:
    import torch


class Configured(Family):
    """A family that transformers builds from a configuration."""

    packages: ClassVar = ("torch", "transformers")


def build(
    name: str, config: Mapping[str, Any], *, head: str = "Model", inputs: tuple[str, ...] = ()
) -> "torch.nn.Module":
    """`{name}{head}` of `{name}Config(**config)`, wrapped so that it returns one tensor.

    It takes its main input, or the two that `inputs` names.

    Raises `MissingExtraError` where transformers is not installed.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    require("transformers")
    import transformers
    from transformers.initialization import no_init_weights

    with no_init_weights():
        network = getattr(transformers, f"{name}{head}")(getattr(transformers, f"{name}Config")(**config))
    # Where an encoder and a decoder share one table, only initialisation would have tied it.
    network.tie_weights()
    return _pair(network, *inputs) if inputs else _wrapped(network)


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


def _pair(network: "Callable[..., Any]", first: str, second: str) -> "torch.nn.Module":
    import torch

    class OneTensor(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.network(**{first: x, second: y}, return_dict=False)[0]
            return result

    return OneTensor()
