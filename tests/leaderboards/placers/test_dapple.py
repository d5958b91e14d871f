"""DAPPLE on pipelines worked by hand: its latency, its placement policies, its plans."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import pipeline, star

from opmark.leaderboards.placers.dapple import StageTimes, append_first, fresh_first, pipeline_ns, scatter_first
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt

MACHINES = [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_the_latency_follows_the_pivot_stage() -> None:
    # four micro-batches: the first stage works 2 + 2 on each and never waits, 16 in all
    slow_first = [
        StageTimes(forward=2, backward=2),
        StageTimes(forward=0, backward=0),
        StageTimes(forward=1, backward=1),
    ]
    assert pipeline_ns(slow_first, 4).tolist() == [16]
    # the gradients of the last stage need 10: they begin 3 before the end of the first stage's last forward
    slow_first[-1] = StageTimes(forward=1, backward=1, all_reduce=10)
    assert pipeline_ns(slow_first, 4).tolist() == [2 + 12 + 7]
    # equal stages and two micro-batches: 1 + 1 to the last stage, 2 there, back over both
    equal = [StageTimes(forward=1, backward=1), StageTimes(forward=0, backward=0), StageTimes(forward=1, backward=1)]
    assert pipeline_ns(equal, 2).tolist() == [6]
    # a slow link is a stage like any other
    assert pipeline_ns([equal[0], StageTimes(forward=9, backward=9), equal[2]], 2).tolist() == [1 + 9 + 18 + 9 + 1]


def test_policies_choose_devices_as_the_paper_draws_them() -> None:
    used = frozenset({0, 1})
    assert fresh_first(MACHINES, used, 3) == (4, 5, 6), "a machine of its own"
    assert append_first(MACHINES, used, 3) == (2, 3, 4), "what the first machine has left, then the next"
    assert scatter_first(MACHINES, used, 2) == (2, 3), "machines in use only, if they have enough"
    assert scatter_first(MACHINES, frozenset({0, 4}), 4) == (1, 2, 5, 6), "evenly over both"
    assert scatter_first(MACHINES, frozenset(), 2) == (0, 4)
    assert fresh_first(MACHINES, used, 7) is None


def test_dapple_looks_at_transfers() -> None:
    # a cut costs 50 and a device only saves 12: one stage
    assert attempt(pipeline([6, 6, 6, 6], 2, 50), "dapple", budget_s=5).evaluation.cost == 24
    assert attempt(pipeline([6, 6, 6, 6], 2, 1), "dapple", budget_s=5).evaluation.cost == 12


def test_dapple_uses_replicas_where_they_are_allowed() -> None:
    found = attempt(replace(pipeline([6, 6], 4, 1), replication=True), "dapple", budget_s=5).evaluation
    assert found.cost == 3
    assert found.placement.replicas


def two_layers(second_weight_bytes: int) -> Problem:
    """A layer of 30 + 60 ns and one of 10 + 20 ns, and their updates; a byte takes a ns."""
    times = {"forward": (30, 10), "backward": (60, 20), "update": (0, 0)}
    units = [
        Unit(name=f"{phase}{layer}", exec_ns={"x": row[layer]}, weights=(f"w{layer}",), phase=phase)
        for phase, row in times.items()
        for layer in (0, 1)
    ]
    edges = {
        "forward0": ("forward1", "backward0"),
        "forward1": ("backward1",),
        "backward1": ("backward0", "update1"),
        "backward0": ("update0",),
    }
    tensors = tuple(
        Tensor(name=f"{name}.out", size_bytes=1, producer=name, consumers=readers) for name, readers in edges.items()
    )
    return Problem(
        name="two-layers",
        cluster=star(0, devices=4),
        units=tuple(units),
        tensors=tensors,
        weights={"w0": 1, "w1": second_weight_bytes},
        objective="throughput",
        replication=True,
        micro_batches=8,
    )


@pytest.mark.parametrize(("weight", "replicas"), [(1, [3]), (10_000, [2])])
def test_every_stage_has_its_own_number_of_replicas(weight: int, replicas: list[int]) -> None:
    # small weights: data parallelism; a heavy second layer: three devices for the first one, one for the second
    found = attempt(two_layers(weight), "dapple", budget_s=10).evaluation.placement
    assert [len(row) for row in found.replicas.values()] == replicas
