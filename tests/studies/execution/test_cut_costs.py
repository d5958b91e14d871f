"""The cost of a cut: how it is measured on two devices, and where a problem pays for it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.studies.execution.tiny import TARGET, branchy, made_problem

from opmark.core.hardware.cluster import Cluster, Device, Link
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.models.resolve import graph_of
from opmark.studies.execution.cut_costs import (
    CutCost,
    as_executed,
    measured_cut_cost,
    one_device,
    slowed_link,
    with_cut_costs,
)
from opmark.studies.execution.stage import ExecutionStage

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LINK = Link(source="a", destination="b", latency_ns=10, bandwidth_bytes_per_s=1e9, points=((8, 20), (80, 50)))


def cost(end_ns: float, ns_per_byte: float) -> CutCost:
    return CutCost(stretch_ns=0.0, end_ns=end_ns, ns_per_byte=ns_per_byte, transfer_ratio=1.0)


def test_every_stretch_is_a_step_of_the_first_device(tmp_path: Path) -> None:
    graph = graph_of(str(branchy(tmp_path / "branchy.onnx")), TARGET, cache=tmp_path)
    numbers = range(len(graph.nodes))
    programme = one_device(graph, [(number,) for number in numbers])
    first, second = programme.devices
    assert [step.kernels for step in first.steps] == [(number,) for number in numbers]
    assert first.outputs == tuple(graph.outputs)
    assert not second.steps


def test_a_problem_pays_at_both_ends_of_a_transfer() -> None:
    devices = tuple(Device(name=name, type=f"t{name}", memory_bytes=1 << 30) for name in "ab")
    links = (Link(source="a", destination="b", latency_ns=10, bandwidth_bytes_per_s=1e18),)
    links += (replace(links[0], source="b", destination="a"),)
    exec_ns = {"ta": 100, "tb": 100}
    problem = Problem(
        name="pair",
        cluster=Cluster(name="pair", devices=devices, links=links),
        units=(Unit(name="u", exec_ns=exec_ns), Unit(name="v", exec_ns=exec_ns)),
        tensors=(Tensor(name="x", size_bytes=8, producer="u", consumers=("v",), boundary_ns={"ta": 1}),),
    )
    cut, whole = Solution(device={"u": "a", "v": "b"}), Solution(device={"u": "a", "v": "a"})
    dear = with_cut_costs(problem, {"ta": cost(20.4, 0.0), "tb": cost(14.0, 2.0)})
    assert evaluate(dear, whole).cost == evaluate(problem, whole).cost == 200
    assert evaluate(dear, cut).cost - evaluate(problem, cut).cost == 50


def test_a_link_slows_down_as_a_whole() -> None:
    slow = slowed_link(LINK, 1.5)
    assert slow.points == ((8, 30), (80, 75))
    assert slow.bandwidth_bytes_per_s == pytest.approx(1e9 / 1.5)


def test_an_executed_problem_knows_that_devices_copy() -> None:
    devices = tuple(Device(name=name, type="t", memory_bytes=1 << 30) for name in "ab")
    problem = Problem(
        name="p", cluster=Cluster(name="c", devices=devices, links=(LINK,)), units=(Unit(name="u", exec_ns={"t": 1}),)
    )
    executed = as_executed(problem, {"t": replace(cost(20.0, 0.0), transfer_ratio=2.0)}).cluster
    assert all(device.own_copies for device in executed.devices)
    assert executed.links == (slowed_link(LINK, 2.0),)


@pytest.mark.skipif(CORES < 2, reason="needs two processor cores")
def test_a_cut_costs_something_on_a_real_runtime(tmp_path: Path) -> None:
    problem = made_problem(str(branchy(tmp_path / "branchy.onnx")), tmp_path)
    with ExecutionStage(problem) as stage:
        found = measured_cut_cost(stage, (), turns=4)
    assert 0 <= found.stretch_ns <= found.end_ns < 1e8
    assert found.ns_per_byte >= 0
    assert 0.1 <= found.transfer_ratio <= 10
