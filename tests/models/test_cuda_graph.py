"""What a GPU runs for a network, told from its graph on the processor."""

import dataclasses

import pytest

from opmark.kinds import KINDS
from opmark.models import resolve
from opmark.models.cuda_graph import as_on_gpu, kernel_on_gpu
from opmark.models.graphs.shipped import save
from opmark.models.resolve import graph_of, graph_origin


def attention(**changes):
    kind = KINDS.load("attention")
    usual = {
        "batch": 1,
        "heads": 4,
        "kv_heads": 4,
        "query_length": 16,
        "key_length": 16,
        "head_size": 64,
        "value_size": 64,
        "variant": "flash",
    }
    return kind.kernel(kind.parameters(**(usual | changes)))


@pytest.mark.parametrize(
    ("changes", "variant"),
    [
        ({"dtype": "bfloat16"}, "flash"),
        ({"dtype": "float32"}, "efficient"),
        ({"dtype": "bfloat16", "mask": (1, 1, 16, 16), "mask_dtype": "bfloat16"}, "efficient"),
        ({"dtype": "bfloat16", "head_size": 512, "value_size": 512}, "efficient"),
        ({"dtype": "float32", "variant": "math"}, "math"),
    ],
)
def test_attention_is_what_torch_picks_on_a_gpu(changes, variant):
    kernel = attention(**changes)
    found = kernel_on_gpu(kernel)
    assert found.params == kernel.params | {"variant": variant}


def test_other_kernels_stay():
    kind = KINDS.load("gemm")
    kernel = kind.kernel(kind.parameters(m=4, n=4, k=4))
    assert kernel_on_gpu(kernel) is kernel


def test_a_graph_changes_in_its_attention_only(tmp_path):
    here = graph_of("encoder-tiny", "torch-eager-t1", cache=tmp_path)
    there = graph_of("encoder-tiny", "torch-cuda-t1", cache=tmp_path)
    assert there.target == "torch-cuda-t1"
    assert there.id != here.id
    changed = [(a, b) for a, b in zip(here.nodes, there.nodes, strict=True) if a != b]
    assert changed
    assert {a.kernel.kind for a, _ in changed} == {"attention"}
    assert {b.kernel.params["variant"] for _, b in changed} == {"efficient"}
    assert as_on_gpu(there) == there


def test_a_graph_of_another_version_of_torch_starts_a_gpu_at_once(tmp_path, monkeypatch):
    graph = graph_of("encoder-tiny", "torch-eager-t1", cache=tmp_path / "first")
    origin = graph_origin("encoder-tiny", "torch-eager-t1")
    older = dict.fromkeys(origin.versions, "1.0.0")
    save(graph, dataclasses.replace(origin, versions=older), tmp_path / "graphs")
    monkeypatch.setattr(resolve, "graphs_folder", lambda: tmp_path / "graphs")
    captured = []
    real = resolve._captured
    monkeypatch.setattr(resolve, "_captured", lambda *given: captured.append(given) or real(*given))
    graph_of("encoder-tiny", "torch-cuda-t1", cache=tmp_path / "gpu")
    assert not captured
    graph_of("encoder-tiny", "torch-eager-t1", cache=tmp_path / "cpu")
    assert captured


def test_code_that_reads_calls_otherwise_is_never_passed_over(tmp_path, monkeypatch):
    graph = graph_of("encoder-tiny", "torch-eager-t1", cache=tmp_path / "first")
    origin = graph_origin("encoder-tiny", "torch-eager-t1")
    save(graph, dataclasses.replace(origin, code="another"), tmp_path / "graphs")
    monkeypatch.setattr(resolve, "graphs_folder", lambda: tmp_path / "graphs")
    captured = []
    real = resolve._captured
    monkeypatch.setattr(resolve, "_captured", lambda *given: captured.append(given) or real(*given))
    graph_of("encoder-tiny", "torch-cuda-t1", cache=tmp_path / "gpu")
    assert captured
