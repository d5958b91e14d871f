"""LeViT (Graham et al., 2021): attention with learned biases between shrinking stages."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "levit-128s": {
        "hidden_sizes": [128, 256, 384],
        "num_attention_heads": [4, 6, 8],
        "depths": [2, 3, 4],
        "key_dim": [16, 16, 16],
    },
    "levit-256": {
        "hidden_sizes": [256, 384, 512],
        "num_attention_heads": [4, 6, 8],
        "depths": [4, 4, 4],
        "key_dim": [32, 32, 32],
    },
}


class Levit(_transformers.Configured):
    """A convolutional stem, then attention and perceptrons that are normalised by batch."""

    name = "levit"
    sizes: ClassVar = {"levit-128s": 224, "levit-256": 224}
    small: ClassVar = ("levit-128s",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network with its pooling and a batch of square images."""
        config = {"image_size": size, **_CONFIGURATIONS[model]}
        return _transformers.build("Levit", config), _transformers.images(batch, size)


FAMILY = Levit()
