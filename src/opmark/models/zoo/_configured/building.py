"""Families that transformers builds from a configuration."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from opmark.core.registry import require
from opmark.models.family import Family

if TYPE_CHECKING:
    import torch

    Network = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]

MEL_BANDS = 80
SPEECH_TOKENS = 32


Models = Mapping[str, tuple[int, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A family of `{network}{head}` networks from `{network}Config`.

    `models` maps each name, the small one first, to its default size and to its configuration. All share `common`;
    `sized` names the parameter that is the size of the input (an image's side, or half of a spectrogram's frames).
    `inputs` is the kind of example inputs: `tokens`, `images`, `sequences` (a source and a target) or `speech` (a
    spectrogram and a target).
    """

    name: str
    summary: str
    network: str
    inputs: str
    models: Models
    common: Mapping[str, Any]
    sized: str = ""
    head: str = "Model"

    def family(self) -> Family:
        """The family that this entry describes."""
        return Family(
            name=self.name,
            sizes={model: size for model, (size, _) in self.models.items()},
            small=(next(iter(self.models)),),
            packages=("torch", "transformers"),
            construct=partial(_construct, self),
            entry=self,
        )


def layers(width: int, depth: int, heads: int, inner: int, **further: Any) -> dict[str, Any]:
    """A transformer's width, layers, heads and inner width, under the names that most configurations use."""
    return {
        "hidden_size": width,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        **further,
    }


def _construct(entry: Configured, model: str, batch: int, size: int) -> "Network":
    """The network, and a batch of its inputs."""
    import torch

    config = {**entry.common, **entry.models[model][1]}
    names: tuple[str, ...] = ()
    if entry.inputs == "images":
        config = {entry.sized: size, **config} if entry.sized else config
    elif entry.inputs == "speech":
        # The first convolutions halve the frames.
        config, names = {entry.sized: (size + 1) // 2, **config}, ("input_features", "decoder_input_ids")
    elif entry.inputs == "sequences":
        names = ("input_ids", "decoder_input_ids")
    network = build(entry.network, config, head=entry.head, inputs=names)
    tokens = partial(torch.randint, int(config.get("vocab_size", 0)))
    inputs: Callable[[], tuple[torch.Tensor, ...]] = {
        "tokens": lambda: (tokens((batch, size)),),
        "images": lambda: (torch.randn(batch, 3, size, size),),
        "sequences": lambda: (tokens((batch, size)), tokens((batch, size))),
        "speech": lambda: (torch.randn(batch, MEL_BANDS, size), tokens((batch, SPEECH_TOKENS))),
    }[entry.inputs]
    return network, inputs()


def build(
    name: str, config: Mapping[str, Any], *, head: str = "Model", inputs: tuple[str, ...] = ()
) -> "torch.nn.Module":
    """`{name}{head}` of `{name}Config(**config)`, offline, wrapped so that it returns one tensor.

    The network takes its main input, or those that `inputs` names. Raises `MissingExtraError` where transformers is not
    installed.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    require("transformers")
    import torch
    import transformers
    from transformers.initialization import no_init_weights

    with no_init_weights():
        network = getattr(transformers, f"{name}{head}")(getattr(transformers, f"{name}Config")(**config))
    # Where an encoder and a decoder share one table, only initialisation would have tied it.
    network.tie_weights()

    class OneTensor(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

    class OfOne(OneTensor):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.network(x, return_dict=False)[0]
            return result

    class OfTwo(OneTensor):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.network(**dict(zip(inputs, (x, y), strict=True)), return_dict=False)[0]
            return result

    return OfTwo() if inputs else OfOne()
