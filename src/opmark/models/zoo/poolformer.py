"""PoolFormer (Yu et al., 2022): average pooling where others attend."""

from typing import TYPE_CHECKING, ClassVar

from opmark.models.zoo._shared import transformers as _transformers

if TYPE_CHECKING:
    import torch

_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "poolformer-mini": {"hidden_sizes": [32, 64, 160, 256], "depths": [1, 1, 3, 1]},
    "poolformer-s12": {},
}


class Poolformer(_transformers.Configured):
    """Four stages of pooling and pointwise convolutions."""

    name = "poolformer"
    sizes: ClassVar = {"poolformer-mini": 160, "poolformer-s12": 224}
    small: ClassVar = ("poolformer-mini",)

    def construct(self, model: str, batch: int, size: int) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
        """The network up to its last stage and a batch of square images."""
        return _transformers.build("PoolFormer", _CONFIGURATIONS[model]), _transformers.images(batch, size)


FAMILY = Poolformer()
