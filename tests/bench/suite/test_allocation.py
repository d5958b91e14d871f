import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.bench.suite.allocation import (
    CORE,
    GPU,
    allocate,
    apportion,
    has_dtype,
    network_roofline_ns,
    operator_of,
    ordinary_device,
    requested_dtype,
    roofline_ns,
    significant_operators,
    time_shares,
)
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work


def network(*kernels: tuple[str, str, int], free: bool = False) -> Graph:
    """A graph of kernels given as kind, element type and FLOPs."""
    nodes = tuple(
        Node(
            name=f"n{index}",
            kernel=Kernel.of(kind, {"dtype": dtype, "number": index}),
            work=Work(flops=flops, read_bytes=0, written_bytes=0),
            inputs=(),
            outputs=(f"t{index}",),
            free=free,
        )
        for index, (kind, dtype, flops) in enumerate(kernels)
    )
    return Graph(name="g", language="onnx", nodes=nodes, tensors={}, inputs=(), outputs=())


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1), min_size=1),
    st.integers(0, 5000),
    st.integers(0, 60),
)
def test_shares_sum_to_the_total_and_keep_the_floor(weights: dict[str, float], total: int, at_least: int) -> None:
    counts = apportion(weights, total, at_least)
    if not total:
        assert counts == {}
        return
    assert set(counts) == set(weights)
    assert sum(counts.values()) == max(total, at_least * len(weights))
    assert min(counts.values()) >= at_least
    ordered = sorted(weights, key=lambda name: weights[name])
    assert all(counts[low] <= counts[high] + 1 for low, high in itertools.pairwise(ordered))


def test_only_kinds_below_the_floor_gain_from_it() -> None:
    assert apportion({"conv": 0.9, "gemm": 0.1, "pool": 0.0}, 100, 4) == {"conv": 86, "gemm": 10, "pool": 4}
    assert apportion({"conv": 0.0, "gemm": 0.0}, 10, 1) == {"conv": 5, "gemm": 5}
    assert apportion({"conv": 1.0, "gemm": 1.0}, 3, 10) == {"conv": 10, "gemm": 10}
    assert apportion({}, 10, 1) == {}


def test_kinds_may_have_floors_of_their_own() -> None:
    weights = {"conv": 0.9, "norm": 0.05, "pool": 0.05}
    assert apportion(weights, 100, {"conv": 4, "norm": 30, "pool": 4}) == {"conv": 66, "norm": 30, "pool": 4}
    assert apportion(weights, 10, {"conv": 4, "norm": 30, "pool": 4}) == {"conv": 4, "norm": 30, "pool": 4}


def test_every_network_counts_the_same() -> None:
    big = network(("conv", "float32", 10**12))
    small = network(("gemm", "float32", 0), ("conv", "float32", 0))
    found = time_shares([big, small], ["float32"])
    assert found["conv", "float32"] == pytest.approx(0.75)
    assert found["gemm", "float32"] == pytest.approx(0.25)
    assert time_shares([network(("conv", "float32", 5), free=True)], ["float32"]) == {}


def test_more_work_takes_longer_and_nothing_is_free() -> None:
    nothing, arithmetic, traffic = (
        roofline_ns(Work(flops=flops, read_bytes=moved, written_bytes=0))
        for flops, moved in ((0, 0), (10**6, 0), (10**6, 10**6))
    )
    assert 0 < nothing < arithmetic < traffic
    assert network_roofline_ns(network(("a", "float32", 0), ("b", "float32", 0))) == 2 * nothing


def test_on_a_gpu_arithmetic_counts_less_than_traffic_and_calls() -> None:
    assert (ordinary_device("torch-cuda-t1"), ordinary_device("torch-eager-t1")) == (GPU, CORE)
    work = Work(flops=10**9, read_bytes=10**6, written_bytes=0)
    assert roofline_ns(work, GPU) < 0.01 * roofline_ns(work, CORE)
    both = network(("conv", "float32", 10**9), ("softmax", "float32", 0))
    on_core, on_gpu = (time_shares([both], ["float32"], device) for device in (CORE, GPU))
    assert on_core["softmax", "float32"] < 0.001 < 0.05 < on_gpu["softmax", "float32"]


def test_a_kernel_counts_under_its_own_element_type_or_the_first() -> None:
    def asked(dtype: str, dtypes: tuple[str, ...]) -> str:
        return requested_dtype(Kernel.of("conv", {"dtype": dtype}), dtypes)

    assert asked("bfloat16", ("float32", "bfloat16")) == "bfloat16"
    assert asked("uint8", ("float32", "int8")) == "int8"
    assert asked("uint8", ("float32", "bfloat16")) == "float32"
    assert asked("int64", ("float32", "int8")) == "float32"
    assert requested_dtype(Kernel.of("conv", {}), ("bfloat16",)) == "bfloat16"


def test_integer_kernels_are_asked_for_where_a_network_has_them() -> None:
    found = time_shares([network(("conv", "int8", 9), ("softmax", "float32", 9))], ["float32", "int8"])
    assert has_dtype("conv", "int8", found)
    assert not has_dtype("softmax", "int8", found)
    assert has_dtype("pool", "bfloat16", found)


def test_without_networks_a_kind_says_what_there_is() -> None:
    assert has_dtype("conv-int8", "int8", {})
    assert has_dtype("softmax", "int8", {})
    assert not has_dtype("norm", "int8", {})
    assert not has_dtype("conv-int8", "float32", {})


def test_what_one_kind_lacks_the_others_give() -> None:
    there = {"few": 3, "many": 100, "more": 100}

    def draw(name: str, count: int) -> list[Kernel]:
        return [Kernel.of(name, {"number": number}) for number in range(min(count, there[name]))]

    weights = {"few": 2.0, "many": 1.0, "more": 1.0}
    drawn = allocate(apportion(weights, 40, 0), weights, draw)
    assert {name: len(kernels) for name, kernels in drawn.items()} == {"few": 3, "many": 19, "more": 18}
    everything = allocate({"few": 50, "many": 500, "more": 0}, weights, draw)
    assert {name: len(kernels) for name, kernels in everything.items()} == {"few": 3, "many": 100, "more": 0}


def test_an_operator_is_felt_where_one_network_spends_time_in_it() -> None:
    def norm(op: str, flops: int) -> Node:
        kernel = Kernel.of("norm", {"op": op, "dtype": "float32"})
        return Node(
            name=op, kernel=kernel, work=Work(flops=flops, read_bytes=0, written_bytes=0), inputs=(), outputs=()
        )

    def graph(*nodes: Node) -> Graph:
        return Graph(name="g", language="onnx", nodes=nodes, tensors={}, inputs=(), outputs=())

    much, little = norm("batch", 10**9), norm("local-response", 0)
    assert significant_operators([graph(much, little)], ["float32"]) == {("norm", "float32"): {"batch"}}
    both = significant_operators([graph(much, little), graph(norm("local-response", 0))], ["float32"])
    assert both == {("norm", "float32"): {"batch", "local-response"}}
    assert operator_of(Kernel.of("gemm", {"m": 1})) == ""


def test_transcendentals_count_by_the_time_that_they_were_measured_to_take() -> None:
    def node(kind: str, op: str, flops: int) -> Node:
        kernel = Kernel.of(kind, {"op": op, "dtype": "float32"})
        work = Work(flops=flops, read_bytes=0, written_bytes=0)
        return Node(name=op, kernel=kernel, work=work, inputs=(), outputs=())

    nodes = (node("conv", "", 10**9), node("elementwise", "tanh", 800_000), node("elementwise", "relu", 800_000))
    graph = Graph(name="g", language="onnx", nodes=nodes, tensors={}, inputs=(), outputs=())
    assert roofline_ns(nodes[1].work) < 0.001 * roofline_ns(nodes[0].work)
    assert significant_operators([graph], ["float32"])["elementwise", "float32"] == {"tanh"}
