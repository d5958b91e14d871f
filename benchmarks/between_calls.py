"""Tell what torch takes beside its calls alone: the Python code of modules, and calls that are slower among others.

For each network, in one process and on one thread: the module as users call it; the same ATen calls from a list,
without the module; and the sum of each call repeated alone. The first difference is the Python code of modules. The
second is what calls take longer among others: it is also told for each call of matrix work (products, convolutions,
attention) and for each other one. Beside them stands the number of Python functions that one pass enters, which does
not depend on the machine, and the time per function.

    python benchmarks/between_calls.py [NETWORK:BATCH:SIZE …]
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
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
    "swin-mini:1:112",
    "dinov2-mini:1:112",
    "qwen2-mini:1:64",
    "roberta-mini:1:128",
    "segformer-mini:1:160",
    "encoder-small:1:64",
    "t5-mini:1:32",
)
REPEATS, ALONE, WARM = 200, 60, 10
# Parts of the names of operators that do matrix work.
MATRIX = ("mm", "conv", "linear", "matmul", "attention")
# An operator, its arguments by position and by name.
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Recorder(TorchDispatchMode):
    """Keeps every ATen call with its operands."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.matrix: list[bool] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the call and keep it, with a copy of what it changes in place."""
        del types
        kept = (args[0].clone(), *args[1:]) if function._schema.is_mutable else args
        self.calls.append((function._op, kept, kwargs or {}))
        self.matrix.append(any(part in function._schema.name for part in MATRIX))
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


def among_others_us(calls: Sequence[Call]) -> list[float]:
    """The tenth percentile of each call, in µs, where all are made one after another."""
    taken: list[list[int]] = [[] for _ in calls]
    for _ in range(WARM + ALONE):
        for own, (operator, args, kwargs) in zip(taken, calls, strict=True):
            begin = time.perf_counter_ns()
            result = operator(*args, **kwargs)
            own.append(time.perf_counter_ns() - begin)
            del result
    return [label(own[WARM:]) / 1e3 for own in taken]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One network: µs as a module, from a list and alone, and how much longer a call takes among others."""

    calls: int
    module_us: float
    list_us: float
    alone_us: float
    matrix_more_us: float
    other_more_us: float
    python_calls: int


def row(spec: str) -> Row:
    """Measure one network."""
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
        among = among_others_us(recorder.calls)
        nothing = latency_us(lambda: None, ALONE)
        alone = [
            latency_us(lambda: operator(*args, **kwargs), ALONE) - nothing  # noqa: B023 (called at once)
            for operator, args, kwargs in recorder.calls
        ]
        entered = python_calls(lambda: module(*inputs))
    more: dict[bool, list[float]] = {True: [], False: []}
    for is_matrix, with_others, by_itself in zip(recorder.matrix, among, alone, strict=True):
        more[is_matrix].append(with_others - nothing - by_itself)
    return Row(
        calls=len(recorder.calls),
        module_us=whole,
        list_us=from_list,
        alone_us=sum(alone),
        matrix_more_us=fmean(more[True]),
        other_more_us=fmean(more[False]),
        python_calls=entered,
    )


def main(specs: Sequence[str]) -> None:
    """Print a line per network."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    print(
        f"{'network':20}{'ATen calls':>11}{'module':>10}{'list':>10}{'alone':>10}{'more, matrix':>14}{'other':>8}"
        f"{'Python calls':>14}{'ns each':>9}"
    )
    for spec in specs or NETWORKS:
        own = row(spec)
        each = 1e3 * (own.module_us - own.list_us) / own.python_calls
        print(
            f"{spec:20}{own.calls:11}{own.module_us:8.0f}µs{own.list_us:8.0f}µs{own.alone_us:8.0f}µs"
            f"{own.matrix_more_us:12.1f}µs{own.other_more_us:6.1f}µs{own.python_calls:14}{each:9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
