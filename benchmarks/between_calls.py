"""Tell what torch takes beside its calls alone: the Python code of modules, and calls that are slower among others.

For each network, in one process and on one thread: the module as users call it; the same ATen calls from a list,
without the module; and the sum of each call repeated alone. The first difference is the Python code of modules. The
second is what calls take longer among others. Beside them stands the number of Python functions that one pass enters,
which does not depend on the machine, and the time per function.

    python benchmarks/between_calls.py [NETWORK:BATCH:SIZE …]
"""

import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opmark.core.measurements.estimate import label
from opmark.models.resolve import torch_module

NETWORKS = (
    "vit-tiny:1:128",
    "gpt2-tiny:1:64",
    "llama-tiny:1:64",
    "bert-tiny:1:128",
    "convnext-mini:8:64",
    "segformer-mini:1:160",
    "encoder-small:1:64",
    "t5-mini:1:32",
)
REPEATS, ALONE, WARM = 200, 60, 10


class Recorder(TorchDispatchMode):
    """Keeps every ATen call with its operands."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the call and keep it, with a copy of what it changes in place."""
        del types
        kept = (args[0].clone(), *args[1:]) if function._schema.is_mutable else args
        self.calls.append((function._op, kept, kwargs or {}))
        return function(*args, **(kwargs or {}))


def latency_us(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """The tenth percentile of `repeats` runs, in µs."""
    for _ in range(WARM):
        run()
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        run()
        taken.append(time.perf_counter_ns() - begin)
    return label(taken) / 1e3


def python_calls(run: Callable[[], object]) -> int:
    """The number of Python functions that `run` enters."""
    entered = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal entered
        del frame, argument
        entered += event == "call"

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered


def row(spec: str) -> tuple[str, int, float, float, float, int]:
    """Measure one network: its name, ATen calls, µs as a module, from a list and alone, and Python calls."""
    name, batch, size = spec.split(":")
    module, inputs = torch_module(name, dimensions={"batch": int(batch), "size": int(size)})
    with torch.inference_mode():
        whole = latency_us(lambda: module(*inputs))
        recorder = Recorder()
        with recorder:
            module(*inputs)

        def listed() -> None:
            for operator, args, kwargs in recorder.calls:
                operator(*args, **kwargs)

        from_list = latency_us(listed)
        nothing = latency_us(lambda: None, ALONE)
        alone = sum(
            latency_us(lambda: operator(*args, **kwargs), ALONE) - nothing  # noqa: B023 (called at once)
            for operator, args, kwargs in recorder.calls
        )
        entered = python_calls(lambda: module(*inputs))
    return spec, len(recorder.calls), whole, from_list, alone, entered


def main(specs: Sequence[str]) -> None:
    """Print a line per network."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    print(f"{'network':24}{'ATen calls':>11}{'module':>10}{'list':>10}{'alone':>10}{'Python calls':>14}{'ns each':>9}")
    for spec in specs or NETWORKS:
        name, calls, whole, listed, alone, entered = row(spec)
        each = 1e3 * (whole - listed) / entered
        print(f"{name:24}{calls:11}{whole:8.0f}µs{listed:8.0f}µs{alone:8.0f}µs{entered:14}{each:9.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
