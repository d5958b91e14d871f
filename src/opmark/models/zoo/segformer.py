"""SegFormer (Xie et al., 2021): semantic segmentation."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "segformer-mini": {
        "hidden_sizes": [16, 32, 80, 128],
        "num_attention_heads": [1, 2, 5, 8],
        "decoder_hidden_size": 64,
    },
    "segformer-b0": {},
}
# ADE20K's.
_CLASSES = 150


class Segformer(_transformers.Configured):
    """A hierarchical encoder whose attention reads a reduced sequence, and a decoder of perceptrons and resizes."""

    name = "segformer"
    sizes: ClassVar = {"segformer-mini": 160, "segformer-b0": 512}
    small: ClassVar = ("segformer-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network that scores every fourth pixel, and a batch of square images."""
        config = {"num_labels": _CLASSES, **_CONFIGURATIONS[model]}
        network = _transformers.build("Segformer", config, head="ForSemanticSegmentation")
        return network, _transformers.images(batch, size)


FAMILY = Segformer()
