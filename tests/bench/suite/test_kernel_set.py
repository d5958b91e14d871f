from collections import Counter
from dataclasses import replace

import pytest

from opmark.bench.suite.allocation import operator_of, significant_operators
from opmark.bench.suite.kernel_set import KernelSet, judging_kernels
from opmark.bench.suite.suite import KindSpec, Prior, Suite
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import work_of
from opmark.models.resolve import graph_of

SUITE = Suite(
    name="s",
    targets=("onnxruntime-cpu-t1", "torch-eager-t1"),
    at_least=6,
    counts={
        "onnxruntime-cpu-t1": {"float32": 300, "int8": 60},
        "torch-eager-t1": {"float32": 200, "bfloat16": 100},
    },
    prior=Prior(share=0.7),
)


@pytest.fixture(scope="module")
def networks() -> list[Graph]:
    return [graph_of(name, "onnxruntime-cpu-t1") for name in ("light-squeezenet", "light-shufflenet")]


def drawing(suite: Suite, target: str, prior: list[Graph], excluded: frozenset[str] = frozenset()) -> KernelSet:
    language = "onnx" if target.startswith("onnx") else "aten"
    return KernelSet(suite=suite, target=target, language=language, block=16, prior=prior, excluded=excluded)


def dtypes_of(kernels: tuple[Kernel, ...]) -> Counter[str]:
    return Counter(str(kernel.params.get("dtype")) for kernel in kernels)


def test_a_target_gets_its_own_counts_by_element_type(networks: list[Graph]) -> None:
    suite = replace(SUITE, kinds={name: KindSpec() for name in ("conv", "pool", "softmax", "elementwise")})
    kernels = drawing(suite, "torch-eager-t1", networks).kernels()
    assert len({kernel.key for kernel in kernels}) == len(kernels) == 300
    assert dtypes_of(kernels)["bfloat16"] == 100
    kinds = Counter(kernel.kind for kernel in kernels)
    assert kinds["conv"] > kinds["softmax"] >= 6
    assert kernels == drawing(suite, "torch-eager-t1", networks).kernels()


def test_integers_are_drawn_only_where_the_prior_has_them(networks: list[Graph]) -> None:
    assert "int8" not in dtypes_of(drawing(SUITE, "onnxruntime-cpu-t1", networks).kernels())


@pytest.mark.parametrize("given", [False, True])
def test_eight_bit_kernels_are_drawn_where_they_exist(given: bool) -> None:
    prior = [graph_of("light-squeezenet@int8-static", "onnxruntime-cpu-t1")] if given else []
    suite = replace(SUITE, dtypes=("float32", "int8"), kernels=150, counts={}, at_least=2)
    kernels = drawing(suite, "onnxruntime-cpu-t1", prior).kernels()
    eight = [kernel for kernel in kernels if kernel.params["dtype"] in {"int8", "uint8"}]
    assert len(eight) >= 100
    kinds = {kernel.kind for kernel in eight}
    assert {"conv-int8", "quantize"} <= kinds <= {kernel.kind for kernel in kernels}
    assert not {"conv", "norm", "attention", "recurrent"} & kinds
    assert ("gemm-int8" in kinds) != given
    wide = [kernel for kernel in kernels if kernel.params["dtype"] == "float32"]
    assert not {"conv-int8", "gemm-int8"} & {kernel.kind for kernel in wide}


def test_real_kernels_but_no_excluded_one(networks: list[Graph]) -> None:
    suite = replace(SUITE, kinds={"conv": KindSpec(count=60)}, prior=Prior(share=1.0))
    real = {node.kernel.key for graph in networks for node in graph.costly if node.kernel.kind == "conv"}
    drawn = {kernel.key for kernel in drawing(suite, "onnxruntime-cpu-t1", networks).kernels()}
    assert len(real & drawn) >= 15
    hidden = frozenset(real & drawn)
    again = {kernel.key for kernel in drawing(suite, "onnxruntime-cpu-t1", networks, hidden).kernels()}
    assert len(again) == 60
    assert not hidden & again


def test_no_kernel_is_drawn_under_two_element_types(networks: list[Graph]) -> None:
    # Kernels of whole numbers count under the first type and must not come again under the second.
    kernels = drawing(SUITE, "torch-eager-t1", networks).kernels()
    assert len({kernel.key for kernel in kernels}) == len(kernels)
    assert set(dtypes_of(kernels)) >= {"float32", "bfloat16"}


def test_every_operator_that_a_network_spends_time_in_gets_its_floor() -> None:
    prior = [graph_of(name, "onnxruntime-cpu-t1") for name in ("light-alexnet", "light-shufflenet")]
    suite = replace(SUITE, counts={}, kernels=300, at_least=6, at_least_per_operator=8)
    felt = significant_operators(prior, ["float32"])
    real = {(kind, operator) for (kind, _), operators in felt.items() for operator in operators}
    assert ("norm", "local-response") in real
    kernels = drawing(suite, "onnxruntime-cpu-t1", prior).kernels()
    found = Counter((kernel.kind, operator_of(kernel)) for kernel in kernels)
    assert all(found[one] >= 8 for one in real)
    assert len(kernels) == 300
    bare = Counter(
        (kernel.kind, operator_of(kernel))
        for kernel in drawing(replace(suite, at_least_per_operator=0), "onnxruntime-cpu-t1", prior).kernels()
    )
    assert bare["norm", "local-response"] < 8


def test_no_drawn_kernel_moves_fewer_bytes_than_the_suite_asks_for(networks: list[Graph]) -> None:
    least = 2**18
    usual = drawing(SUITE, "torch-eager-t1", networks).kernels()
    assert any(work_of(kernel).moved_bytes < least for kernel in usual)
    kernels = drawing(replace(SUITE, least_moved_bytes=least), "torch-eager-t1", networks).kernels()
    assert len(kernels) > len(usual) / 2
    assert min(work_of(kernel).moved_bytes for kernel in kernels) >= least


def test_families_take_turns_and_small_networks_come_first() -> None:
    graphs = {name: graph_of(name, "onnxruntime-cpu-t1") for name in ("light-squeezenet", "light-inception-v1")}
    kernels = {name: {node.kernel for node in graph.costly} for name, graph in graphs.items()}
    networks = [("inception", graphs["light-inception-v1"]), ("squeezenet", graphs["light-squeezenet"])]
    small = len(kernels["light-squeezenet"])
    assert small < len(kernels["light-inception-v1"])
    assert set(judging_kernels(networks, small)) == kernels["light-squeezenet"]
    again = [("squeezenet", graphs["light-squeezenet"]), *networks]
    both = judging_kernels(again, 10_000)
    assert set(both) == kernels["light-squeezenet"] | kernels["light-inception-v1"]
    assert len(both) == len(set(both))
    assert judging_kernels(networks, 0) == ()
