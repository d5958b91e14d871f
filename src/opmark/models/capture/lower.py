"""A module in a smaller floating-point type."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def in_bfloat16(
    module: "torch.nn.Module", inputs: "tuple[torch.Tensor, ...]", *, weights: bool
) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
    """`module` with bfloat16 weights, changed in place, and its floating inputs in bfloat16.

    Without `weights` their values are not read: billions of them take longer to convert than to trace.
    """
    import torch

    def lowered(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.to(torch.bfloat16) if weights else torch.empty_like(tensor, dtype=torch.bfloat16)

    module._apply(lowered)  # type: ignore[no-untyped-call]
    return module, tuple(item.to(torch.bfloat16) if item.is_floating_point() else item for item in inputs)
