"""Device types as files, and the costs of kernels on them."""

from pathlib import Path

import numpy as np
import pytest

from opmark.core.errors import ContentError, UnknownNameError
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.leaderboards.making.device_table import KindRoofline, costs_of, load_table, table_names
from opmark.leaderboards.making.prediction_error import error_factors
from opmark.leaderboards.making.rooflines import RooflineCosts

ANALYTIC = """
schema: 1
title: A made-up accelerator
provenance: analytic
source: its data sheet
runtime: torch-cuda-t1
memory_bytes: 1000
peak_flops_per_s: {float32: 1.0e+12, float16: 4.0e+12}
bandwidth_bytes_per_s: 1.0e+11
launch_ns: 500
efficiency: made-up
"""
EFFICIENCY = """
schema: 1
source: nobody measured it
kinds:
  gemm: {compute: 0.5, memory: 1.0, half_width: 0.25}
  "*": {compute: 1.0, memory: 0.5, half_width: 0.7}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "devices" / "efficiency").mkdir(parents=True)
    (tmp_path / "devices" / "made.yaml").write_text(ANALYTIC)
    (tmp_path / "devices" / "efficiency" / "made-up.yaml").write_text(EFFICIENCY)
    return tmp_path


def node(kind: str, dtype: str = "float32", *, free: bool = False) -> Node:
    work = Work(flops=1_000_000, read_bytes=60_000, written_bytes=40_000)
    kernel = Kernel.of(kind, {"dtype": dtype})
    return Node(name=f"{kind}-{dtype}-{free}", kernel=kernel, work=work, inputs=(), outputs=(), free=free)


def graph(*nodes: Node) -> Graph:
    return Graph(name="net", language="aten", nodes=nodes, tensors={"x": TensorSpec((1,))}, inputs=("x",), outputs=())


def test_an_analytic_device_reaches_its_share_of_the_data_sheet(folder: Path) -> None:
    table = load_table(folder, "made")
    assert table_names(folder) == ("made",)
    net = graph(node("gemm"), node("gemm", "float16"), node("pool"), node("pool", free=True))
    cost = costs_of(table, folder).network(net)
    # 10^6 FLOP at half of 10^12/s, 10^5 bytes at 10^11/s, and 500 ns to start
    assert cost.node_ns.tolist() == pytest.approx([2000 + 1000 + 500, 500 + 1000 + 500, 1000 + 2000 + 500, 0])
    assert cost.total_ns == pytest.approx(float(np.sum(cost.node_ns)))
    assert error_factors(net, cost)[0] == pytest.approx((np.exp(-0.25), np.exp(0.25)))
    device = table.device("gpu0", "made")
    assert (device.provenance, device.target, device.memory_bytes) == ("analytic", "made/torch-cuda-t1", 1000)


def test_fitted_rooflines_are_taken_as_they_are_and_never_below_the_least() -> None:
    line = KindRoofline(ns_per_flop=0.0, ns_per_byte=0.001, constant_ns=10, least_ns=400, half_width=0.0)
    assert RooflineCosts(rooflines={"*": line}).network(graph(node("pool"))).total_ns == 400


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("provenance: analytic", "provenance: guessed", "provenance: one of measured, imported, analytic"),
        ("source: its data sheet", 'source: " "', "must name where the figures come from"),
        ("efficiency: made-up", "bundle: acme/1.0.0/x\nefficiency: made-up", "exactly one of bundle"),
        ("efficiency: made-up", 'efficiency: ""', "needs bandwidth_bytes_per_s and efficiency"),
        ("memory_bytes: 1000", "memory_bytes: 0", "memory_bytes: must be positive"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "devices" / "made.yaml"
    path.write_text(ANALYTIC.replace(old, new))
    with pytest.raises(ContentError, match=message):
        load_table(folder, "made")


def test_unknown_types_and_wrong_shares_are_refused(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="device type"):
        load_table(folder, "mode")
    path = folder / "devices" / "efficiency" / "made-up.yaml"
    path.write_text(EFFICIENCY.replace("compute: 0.5", "compute: 1.5"))
    with pytest.raises(ContentError, match="must be in"):
        costs_of(load_table(folder, "made"), folder)
    path.write_text(EFFICIENCY.replace('"*"', "pool"))
    with pytest.raises(ContentError, match="all other kinds"):
        costs_of(load_table(folder, "made"), folder)
