"""Coarsened problems: no cycle, no lost work, phases and classes apart; and the classes of trained weights."""

import itertools
from dataclasses import replace

from hypothesis import given, settings
from tests.leaderboards.examples import graph, pair, problems

from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.making.coarsening import coarsened, colocated_by_weight
from opmark.leaderboards.problem.checks import findings
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate


@settings(deadline=None)
@given(problems(max_units=14))
def test_what_is_coarsened_has_no_cycle_and_all_of_the_work(problem: Problem) -> None:
    small = coarsened(problem, 3)
    assert not findings(small)
    assert len(small.units) <= len(problem.units)
    for kind in ("x", "y"):
        before = sum(unit.exec_ns.get(kind, 0) for unit in problem.units)
        assert sum(unit.exec_ns.get(kind, 0) for unit in small.units) == before
    assert held(small) == held(problem)


def test_a_chain_becomes_as_short_as_wanted_and_costs_the_same_on_one_device() -> None:
    names = [f"u{number:02}" for number in range(40)]
    chain = graph(
        {name: 10 + number for number, name in enumerate(names)},
        [(name, (after,)) for name, after in itertools.pairwise(names)],
        pair(),
    )
    small = coarsened(chain, 8)
    assert len(small.units) == 8
    costs = [evaluate(one, Solution(device={unit.name: "d1" for unit in one.units})).cost for one in (chain, small)]
    assert costs[0] == costs[1]
    assert max(unit.exec_ns["x"] for unit in small.units) < 3 * sum(range(10, 50)) / 8, "no unit swallows the rest"


def test_branches_stay_apart_as_long_as_there_is_room() -> None:
    times = {"in": 1, "out": 1} | {f"{side}{step}": 5 for side in "abcd" for step in range(6)}
    edges = [("in", tuple(f"{side}0" for side in "abcd"))]
    edges += [(f"{side}{step}", (f"{side}{step + 1}",)) for side in "abcd" for step in range(5)]
    edges += [(f"{side}5", ("out",)) for side in "abcd"]
    small = coarsened(graph(times, edges, pair()), 6)
    assert len(small.units) == 6
    assert bounds(small)["critical_path"] < 0.75 * 122, "branches still run side by side"


def test_phases_are_not_joined_and_classes_only_where_nothing_else_can_be() -> None:
    whole = colocated_by_weight(trained())
    assert {unit.colocation for unit in coarsened(whole, 6).units} == {"w0", "w1"}
    small = coarsened(whole, 1)
    assert [unit.phase for unit in small.units] == ["forward", "backward", "update"]
    assert len({unit.colocation for unit in small.units}) == 1, "two layers that share a unit share a device"


def test_what_reads_changes_or_serves_a_trained_weight_shares_a_device() -> None:
    found = {unit.name: unit.colocation for unit in colocated_by_weight(trained()).units}
    assert found["first"] == found["first_backward"] == found["first_update"] != ""
    assert found["second"] == found["second_backward"] == found["second_update"] != found["first"]
    assert found["loss_backward"] == ""
    inference = replace(trained(), units=trained().units[:2], tensors=())
    assert colocated_by_weight(inference) == inference


def test_what_no_tensor_ties_goes_with_what_runs_next() -> None:
    times = {"first": 10, "count": 1, "second": 20, "third": 30}
    edges = [("first", ("second",)), ("second", ("third",))]
    small = coarsened(graph(times, edges, pair()), 3)
    assert {unit.name: unit.exec_ns["x"] for unit in small.units} == {"first": 10, "second": 21, "third": 30}


def held(problem: Problem) -> int:
    """Bytes of all weights that some unit reads."""
    return sum(problem.weights[name] for name in {name for unit in problem.units for name in unit.weights})


def trained() -> Problem:
    """Two layers with a constant table that both read, and their backward pass."""
    rows = {
        "first": ("forward", ("w1", "table")),
        "second": ("forward", ("w2", "table")),
        "loss_backward": ("backward", ()),
        "second_backward": ("backward", ("w2",)),
        "first_backward": ("backward", ()),
        "second_update": ("update", ("w2", "state2")),
        "first_update": ("update", ("w1",)),
    }
    edges = [("first", "second"), ("second", "loss_backward"), ("loss_backward", "second_backward")]
    edges += [("second_backward", "first_backward"), ("second_backward", "second_update")]
    edges += [("first_backward", "first_update"), ("first", "second_backward")]
    return Problem(
        name="trained",
        cluster=pair(),
        units=tuple(
            Unit(name=name, exec_ns={"x": 3}, phase=phase, weights=weights) for name, (phase, weights) in rows.items()
        ),
        tensors=tuple(Tensor(name=f"{a}-{b}", size_bytes=4, producer=a, consumers=(b,)) for a, b in edges),
        weights={"w1": 8, "w2": 8, "table": 2, "state2": 16},
    )
