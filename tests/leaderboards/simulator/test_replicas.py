"""Replicas that share a pass: parts, slices and the exchange of gradients, worked by hand; interference."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards.examples import device, graph, pair, star
from tests.leaderboards.reference import Reference

from opmark.core.errors import PlacementError
from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.checks import findings
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.graph import class_names
from opmark.leaderboards.problem.interference import factor_of, slowed_ends, slowest_factor
from opmark.leaderboards.problem.placement import Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.replicas import expand
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace


def step(devices: int = 2, *, latency_ns: int = 0, weight_bytes: int = 60, **facts: object) -> Problem:
    """A forward, its backward, and the update of their weight; a byte takes a ns."""
    cluster = star(latency_ns, devices)
    split = {"x": tuple(100 // parts for parts in range(2, 9))}
    units = (
        Unit(name="f", exec_ns={"x": 100}, weights=("w",), split_ns=split, workspace_bytes=8),
        Unit(name="b", exec_ns={"x": 100}, weights=("w",), split_ns=split, phase="backward"),
        Unit(name="u", exec_ns={"x": 7}, weights=("w",), phase="update"),
    )
    tensors = (
        Tensor(name="in", size_bytes=40, consumers=("f",)),
        Tensor(name="act", size_bytes=20, producer="f", consumers=("b",)),
        Tensor(name="grad", size_bytes=weight_bytes, producer="b", consumers=("u",)),
    )
    return Problem(
        name="step",
        cluster=cluster,
        units=units,
        tensors=tensors,
        weights={"w": weight_bytes},
        replication=True,
        **facts,  # type: ignore[arg-type]
    )


def everywhere(count: int) -> Solution:
    others = tuple(f"d{number}" for number in range(1, count))
    return Solution(device=dict.fromkeys("fbu", "d0"), replicas={"d0": others} if others else None)


def test_a_training_step_alone() -> None:
    found = evaluate(step(optimizer_state=2.0), everywhere(1))
    assert found.cost == 207
    # the weight, two more for the optimiser, the input with workspace and activation
    assert found.schedule.peak_bytes.tolist() == [180 + max(40 + 8 + 20, 20 + 60, 60), 0]


def test_two_replicas_share_the_batch_and_exchange_halves() -> None:
    problem = step()
    found = evaluate(problem, everywhere(2))
    # half of the input travels for 20; parts of 50; two rounds of 30 bytes; the update
    assert found.cost == 20 + 50 + 50 + 2 * 30 + 7
    wide = expand(problem, found.placement)
    assert sum(wide.part_of >= 0) == 6
    assert [int(number) for number in found.schedule.unit_end_ns] == [70, 120, 187]
    sizes = sorted(tensor.size_bytes for tensor in wide.problem.tensors if tensor.size_bytes == 30)
    assert len(sizes) == 4


@pytest.mark.parametrize(
    ("method", "exchange_ns"),
    [
        ("ring-all-reduce", 4 * 20),  # 2 · (3 − 1) rounds of a third
        ("parameter-server", 2 * 60),  # each on a link of its own, there and back
        ("broadcast", 60),
        ("double-binary-tree", 4 * 30),  # two levels up, two down, halves
    ],
)
def test_how_three_replicas_agree(method: str, exchange_ns: int) -> None:
    problem = step(3, weight_bytes=60, synchronisation=method)
    problem = replace(problem, tensors=problem.tensors[1:])
    assert evaluate(problem, everywhere(3)).cost == 33 + 33 + exchange_ns + 7


def test_a_strict_order_reaches_every_replica() -> None:
    order = {"d0": ("f", "b", "u")}
    free, strict = (evaluate(step(), replace(everywhere(2), order=given_order)) for given_order in (None, order))
    assert strict.cost == free.cost
    assert evaluate(step(), replace(everywhere(2), priority={"f": 1, "b": 2, "u": 3})).cost == free.cost


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(0, 50),
    st.sampled_from(["ring-all-reduce", "parameter-server", "broadcast", "double-binary-tree"]),
    st.booleans(),
)
def test_parts_obey_the_rules_and_their_trace_validates(count: int, latency: int, method: str, after: bool) -> None:
    problem = step(4, latency_ns=latency, synchronisation=method)
    units = (*problem.units, Unit(name="tail", exec_ns={"x": 5}))
    act = replace(problem.tensors[1], consumers=("b", "tail"), boundary_ns={"x": 4})
    problem = replace(problem, units=units, tensors=(problem.tensors[0], act, problem.tensors[2]))
    answer = everywhere(count)
    answer = replace(answer, device={**answer.device, "tail": "d3" if after else "d0"})
    if not after:
        problem = replace(problem, units=(*units[:3], replace(units[3], split_ns={"x": (3, 2)})))
    found = evaluate(problem, answer)
    inner = found.shown(problem)
    places = {
        unit.name: inner[0].cluster.devices[number].name
        for unit, number in zip(inner[0].units, inner[1].device.tolist(), strict=True)
    }
    assert Reference(inner[0], places).cost == found.cost
    assert check_trace(problem, chrome_trace(problem, found)) == found.cost


def test_a_unit_without_times_for_parts_is_named() -> None:
    problem = step()
    bare = replace(problem, units=(replace(problem.units[0], split_ns={}), *problem.units[1:]))
    with pytest.raises(PlacementError, match="unit 'f' has no time for one of 2 parts on 'x'"):
        evaluate(bare, everywhere(2))


def test_what_touches_an_updated_weight_stays_together() -> None:
    problem = step()
    assert class_names(problem) == ["w", "w", "w"]
    with pytest.raises(PlacementError, match="units 'f' and 'b' must share a device"):
        placement_of(problem, Solution(device={"f": "d0", "b": "d1", "u": "d0"}))
    forward = replace(problem, units=tuple(replace(unit, phase="forward") for unit in problem.units))
    assert class_names(forward) == ["", "", ""]
    named = replace(problem, units=(replace(problem.units[0], colocation="k"), *problem.units[1:]))
    assert class_names(named) == ["k", "k", "k"]


def test_neighbours_slow_one_another() -> None:
    cluster = Cluster(name="one", devices=(device("d0", slots=2),))
    problem = graph({"a": 100, "b": 50}, [], cluster)
    problem = replace(problem, interference={"x": {"*": {"*": 1.5}}})
    found = evaluate(problem, Solution(device={"a": "d0", "b": "d0"}))
    # together until b ends at 75; a has 50 left
    assert found.schedule.unit_end_ns.tolist() == [125, 75]
    assert check_trace(problem, chrome_trace(problem, found)) == 125
    units = (replace(problem.units[0], kind="conv"), replace(problem.units[1], kind="linear"))
    unequal = replace(problem, units=units, interference={"x": {"conv": {"linear": 2.0}, "linear": {"*": 1.0}}})
    assert evaluate(unequal, Solution(device={"a": "d0", "b": "d0"})).schedule.unit_end_ns.tolist() == [125, 50]
    assert [factor_of(unequal, "x", *pair_of) for pair_of in (("conv", "linear"), ("conv", "conv"))] == [2.0, 1.0]
    assert slowest_factor(unequal) == 1
    ends = slowed_ends(unequal, "x", [(0, "a"), (0, "b")], {"a": 100, "b": 50})
    assert ends == {"a": 125, "b": 50}


def test_a_factor_below_one_is_refused() -> None:
    problem = replace(graph({"a": 1}, [], pair()), interference={"x": {"*": {"*": 0.5}}})
    assert "interference.x.*.*: must be from 1 to 64, not 0.5" in findings(problem)
