"""RegNet (Radosavovic et al., 2020): the X design, and Y with squeeze-and-excitation."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "regnet-y-200mf": {"hidden_sizes": [24, 56, 152, 368], "depths": [1, 1, 4, 7], "groups_width": 8},
    "regnet-x-800mf": {
        "hidden_sizes": [64, 128, 288, 672],
        "depths": [1, 3, 7, 5],
        "groups_width": 16,
        "layer_type": "x",
    },
    "regnet-y-4gf": {"hidden_sizes": [128, 192, 512, 1088], "depths": [2, 6, 12, 2], "groups_width": 64},
}


class Regnet(_transformers.Configured):
    """Bottlenecks of grouped convolutions; names give the design and its floating-point operations."""

    name = "regnet"
    sizes: ClassVar = {"regnet-y-200mf": 160, "regnet-x-800mf": 224, "regnet-y-4gf": 224}
    small: ClassVar = ("regnet-y-200mf",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network with its pooling and a batch of square images."""
        return _transformers.build("RegNet", _CONFIGURATIONS[model]), _transformers.images(batch, size)


FAMILY = Regnet()
