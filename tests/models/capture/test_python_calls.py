"""Python functions of a forward pass: those that a real pass enters, counted without computing anything."""

import sys

import pytest

pytest.importorskip("torch")

import torch

from opmark.core.kernels.graph import Graph
from opmark.models import zoo
from opmark.models.capture.aten import capture


def entered(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> int:
    """The calls of a second, real forward pass, by Python's own profiling hook."""
    counted = []
    with torch.inference_mode():
        module(*inputs)
        sys.setprofile(lambda frame, event, _: counted.append(frame.f_code) if event == "call" else None)
        try:
            module(*inputs)
        finally:
            sys.setprofile(None)
    return len(counted)


def captured(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Graph:
    return capture(lambda: (module, inputs), name="net")


@pytest.mark.parametrize("model", ["plain-tiny", "inception-tiny", "wide-and-deep-tiny", "encoder-tiny"])
def test_fake_tensors_enter_the_functions_of_real_ones(model: str) -> None:
    built = zoo.build(model, weights=True)
    graph = captured(built.module, built.inputs)
    assert graph.python_calls == pytest.approx(entered(built.module, built.inputs), rel=0.03)


def test_each_function_counts_once_for_each_call() -> None:
    class Twice(torch.nn.Module):
        def forward(self, one: torch.Tensor) -> torch.Tensor:
            return self.add(self.add(one))

        def add(self, one: torch.Tensor) -> torch.Tensor:
            return one + 1

    class Once(Twice):
        def forward(self, one: torch.Tensor) -> torch.Tensor:
            return self.add(one)

    inputs = (torch.zeros(3),)
    twice, once = (captured(module().eval(), inputs).python_calls for module in (Twice, Once))
    assert twice is not None
    assert once is not None
    assert twice - once == 1
    assert twice == entered(Twice().eval(), inputs)


def test_sizes_do_not_change_the_count() -> None:
    counts = {
        captured(built.module, built.inputs).python_calls
        for built in (zoo.build("encoder-tiny", weights=False, batch=batch) for batch in (1, 4))
    }
    assert len(counts) == 1


def test_a_profile_of_somebody_else_stays() -> None:
    def somebody(*_: object) -> None:
        return None

    module, inputs = torch.nn.Linear(2, 2).eval(), (torch.zeros(1, 2),)
    sys.setprofile(somebody)
    try:
        captured(module, inputs)
        assert sys.getprofile() is somebody
    finally:
        sys.setprofile(None)
