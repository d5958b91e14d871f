"""Graphs of modules that exist in this process only."""

import pytest
import torch

from opmark.core.errors import UsageError
from opmark.models.live_module import graph_of_module


class Attention(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)


def test_each_runtime_has_kernels_of_its_own() -> None:
    module, inputs = torch.nn.Linear(16, 32), (torch.zeros(4, 16),)
    assert module.training
    aten, onnx = (graph_of_module(module, inputs, f"{name}-t1") for name in ("torch-eager", "onnxruntime-cpu"))
    assert (aten.language, onnx.language) == ("aten", "onnx")
    assert [node.kernel.kind for node in aten.costly] == [node.kernel.kind for node in onnx.costly] == ["gemm"]
    assert (aten.name, aten.target) == ("Linear", "torch-eager-t1")
    assert module.training


def test_a_gpu_picks_its_own_attention() -> None:
    inputs = (torch.zeros(1, 2, 64, 32),)
    host, gpu = (graph_of_module(Attention(), inputs, name) for name in ("torch-eager-t1", "torch-cuda-t1"))
    assert [one.kernel.params["variant"] for one in host.costly if one.kernel.kind == "attention"] == ["flash"]
    assert [one.kernel.params["variant"] for one in gpu.costly if one.kernel.kind == "attention"] == ["efficient"]


def test_a_runtime_without_graphs_is_refused() -> None:
    with pytest.raises(UsageError, match="no kernel graphs for null yet"):
        graph_of_module(torch.nn.ReLU(), (torch.zeros(1),), "null-t1")


class Remembering(torch.nn.Module):
    """Keeps what it computes, as modules with tables of positions do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.tables: dict[str, dict[int, torch.Tensor]] = {"of rows": {}}
        self.seen: list[torch.Tensor] = []
        self.last: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = self.tables["of rows"].setdefault(len(x), torch.arange(len(x), dtype=x.dtype)[:, None])
        self.seen.append(table)
        if self.last is None or len(self.last) != len(x):
            self.last = self.inner(x) + table
        return self.last * 2


@pytest.mark.parametrize("target", ["torch-eager-t1", "torch-cuda-t1"])
def test_a_module_that_keeps_what_it_computes_still_computes_afterwards(target: str) -> None:
    x, module = torch.rand(3, 4), Remembering().eval()
    tables, held = module.tables["of rows"], set(vars(module))
    graph_of_module(module, (x,), target)
    assert module.tables["of rows"] is tables
    assert (tables, module.seen, module.last, set(vars(module))) == ({}, [], None, held)
    first = module(x)
    graph_of_module(module, (torch.rand(5, 4),), target)
    assert type(module.last) is torch.Tensor
    assert list(tables) == [3]
    assert torch.equal(module(x), first)


class Lazy(torch.nn.Module):
    """Makes a layer in the first call, as BigBird does for short texts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner: torch.nn.Module | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.inner is None:
            self.inner = torch.nn.Linear(4, 4)
        return self.inner(x)


def test_layers_made_in_the_first_call_are_no_part_of_a_call() -> None:
    module, inputs = Lazy(), (torch.rand(3, 4),)
    graph = graph_of_module(module, inputs, "torch-eager-t1")
    assert [node.kernel.kind for node in graph.costly] == ["gemm"]
    assert len(graph.weights) == 2, "its matrix and its bias"
    assert module.inner is None
    assert module(*inputs).shape == (3, 4)


class Sampling(torch.nn.Module):
    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Sampling.calls += 1
        return x + torch.randn_like(x)


def test_numbers_drawn_in_every_call_stay() -> None:
    graph = graph_of_module(Sampling(), (torch.rand(3, 4),), "torch-eager-t1")
    assert sorted(node.kernel.kind for node in graph.costly) == ["elementwise", "random"]
    assert Sampling.calls == 3, "a first pass, one that is recorded, one whose Python functions are counted"
