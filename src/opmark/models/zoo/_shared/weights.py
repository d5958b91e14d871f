"""Sets weights that keep activations in a normal range, quickly and reproducibly."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_RANDOM = {"normal_", "uniform_", "trunc_normal_", "erfinv_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_"}


@contextlib.contextmanager
def without_initialisation() -> Iterator[None]:
    """Let constructors leave weights uninitialised: drawing 10⁸ numbers takes longer than tracing a network."""
    from torch.overrides import TorchFunctionMode

    class SkipRandom(TorchFunctionMode):
        def __torch_function__(
            self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            del types
            if getattr(func, "__name__", "") in _RANDOM and args:
                return args[0]
            return func(*args, **(kwargs or {}))

    with SkipRandom():
        yield


def sane_weights(module: "torch.nn.Module") -> None:
    """Kaiming-scaled weights, unit norms, zero biases; every parameter is written, in place.

    Default initialisation lets deep networks decay to subnormal numbers or overflow; neither is what a
    trained network computes with.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    written: set[int] = set()
    with torch.no_grad():
        for part in module.modules():
            for name, parameter in part.named_parameters(recurse=False):
                if id(parameter) not in written:
                    written.add(id(parameter))
                    _fill(part, name, parameter, generator)
        for tensor in module.buffers():
            if tensor.is_floating_point():
                tensor.nan_to_num_(0.0, 1.0, 0.0)


def _fill(part: "torch.nn.Module", name: str, parameter: "torch.Tensor", generator: "torch.Generator") -> None:
    import torch

    if isinstance(part, torch.nn.Embedding):
        parameter.normal_(0.0, 0.02, generator=generator)
    elif parameter.dim() >= 2:
        fan_in = parameter[0].numel()
        # GPT-2's Conv1D stores its matrix transposed.
        fan_in = parameter.shape[0] if type(part).__name__ == "Conv1D" else fan_in
        gain = 2.0 if isinstance(part, torch.nn.Conv2d) else 1.0
        parameter.normal_(0.0, (gain / fan_in) ** 0.5, generator=generator)
    elif "bias" in name:
        parameter.zero_()
    elif "layer_scale" in name or "gamma" in name:
        parameter.fill_(0.1)
    else:
        parameter.fill_(1.0)
