"""The variants of a torch network: in bfloat16, and one training step of forward, loss, backward and AdamW."""

# ruff: noqa: TID253 (this module is imported only when a variant is built)

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from opmark.core.errors import ContentError


def in_bfloat16(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], *, weights: bool
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """`module` with bfloat16 weights, changed in place, and its floating inputs in bfloat16.

    Without `weights` their values are not read: billions of them take longer to convert than to trace.
    """

    def lowered(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.to(torch.bfloat16) if weights else torch.empty_like(tensor, dtype=torch.bfloat16)

    module._apply(lowered)  # type: ignore[no-untyped-call]
    return module, tuple(item.to(torch.bfloat16) if item.is_floating_point() else item for item in inputs)


class TrainingStep:
    """Training steps of `module` on `inputs`; `enter` is called with each phase: forward, backward, update.

    The module is put into training mode. The optimiser is `torch.optim.AdamW` with its defaults, its state present
    from the first step. `loss_of` defines the loss.
    Raises `ContentError` where there is nothing to train.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: Sequence[Any],
        *,
        enter: Callable[[str], None] | None = None,
    ) -> None:
        if not any(item.is_floating_point() for item in module.parameters()):
            raise ContentError("a network without weights cannot be trained")
        self._module = module.train().requires_grad_(True)
        self._inputs = inputs
        self._enter = enter or _unheard
        self._targets: torch.Tensor | None = None
        self._optimizer = torch.optim.AdamW(module.parameters())
        for parameter in module.parameters():
            self._optimizer.state[parameter] = {
                "step": torch.zeros(()),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

    def __call__(self) -> torch.Tensor:
        """Take one step and return the loss before it."""
        self._enter("forward")
        result = self._module(*self._inputs)
        outputs = [item for item in pytree.tree_leaves(result) if isinstance(item, torch.Tensor) and item.requires_grad]
        if not outputs:
            raise ContentError("nothing that the network returns depends on a weight, so it cannot be trained")
        if self._targets is None:
            self._targets = targets_of(outputs[0])
        loss = loss_of(outputs[0], self._targets)
        self._enter("backward")
        loss.backward()  # type: ignore[no-untyped-call]
        self._enter("update")
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss


def _unheard(_phase: str) -> None:
    """Ignore the phase."""


def loss_of(output: torch.Tensor, targets: torch.Tensor | None) -> torch.Tensor:
    """Cross-entropy over the last axis of scores and sequences, one class per row; the mean of anything else."""
    if targets is None:
        return output.mean()
    return torch.nn.functional.cross_entropy(output.flatten(0, -2), targets)


def targets_of(output: torch.Tensor) -> torch.Tensor | None:
    """A class for every row of scores, None where the output is an image or one number per example."""
    if output.dim() not in {2, 3} or output.shape[-1] < 2:
        return None
    rows = output.shape[:-1].numel()
    with torch.utils._python_dispatch._disable_current_modes():
        return torch.arange(rows) % int(output.shape[-1])
