"""One training step as users write it: forward, a loss, backward, AdamW; gradients start as nothing."""

# ruff: noqa: TID253 (this module is imported only when something is trained)

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from opmark.core.errors import ContentError


class TrainingStep:
    """Steps of `module` on `inputs`; `enter` is told the phase that begins: forward, backward, update.

    The module is put into training mode. The optimiser is `torch.optim.AdamW` as it comes, with its state there from
    the first step. The loss is described at `loss_of`.
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
        """Take one step; the loss before it."""
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
    """Nobody wants to know."""


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
