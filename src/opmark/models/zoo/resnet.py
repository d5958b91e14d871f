"""ResNet-50 (He et al., 2016)."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "resnet-tiny": {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1]},
    "resnet-50": {},
}


class Resnet(_transformers.Configured):
    """Bottleneck residual blocks."""

    name = "resnet"
    sizes: ClassVar = {"resnet-tiny": 64, "resnet-50": 224}
    small: ClassVar = ("resnet-tiny",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network up to its last stage and a batch of square images."""
        return _transformers.build("ResNet", _CONFIGURATIONS[model]), _transformers.images(batch, size)


FAMILY = Resnet()
