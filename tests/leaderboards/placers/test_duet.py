"""DUET's phases, sessions, greedy placement and correction on cases worked by hand."""

from dataclasses import replace

from tests.contracts.test_placers import training
from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.placers.duet import phases
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.cuts.blocks import blocks_of

DIAMOND = [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])]


def names(problem: Problem) -> list[list[str]]:
    """The subgraphs of each phase, by the names of their units."""
    of_unit = blocks_of(problem).of_unit.tolist()
    units = [unit.name for unit in problem.units]
    return [
        sorted("".join(name for name, own in zip(units, of_unit, strict=True) if own in row) for row in phase)
        for phase in phases(blocks_of(problem))
    ]


def test_a_diamond_has_two_sequential_phases_and_a_multi_path_one() -> None:
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, DIAMOND, pair(20))
    assert names(problem) == [["a"], ["b", "c"], ["d"]]
    # 10, 50 here, and 20 to send and 50 there, where the join waits for nothing more: 10
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 90


def test_paths_may_begin_at_inputs_of_their_own() -> None:
    # two towers and a head: the towers are paths of one phase though nothing comes before them
    edges = [("a", ["b"]), ("c", ["d"]), ("b", ["e"]), ("d", ["e"])]
    problem = graph({"a": 5, "b": 5, "c": 5, "d": 5, "e": 1}, edges, pair(1))
    assert names(problem) == [["ab", "cd"], ["e"]]
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 12


def test_a_shortcut_hides_no_branches() -> None:
    # a feeds f over everything: between them is one path, whose own branches count
    edges = [("a", ["b", "f"]), ("b", ["c", "d"]), ("c", ["e"]), ("d", ["e"]), ("e", ["f"])]
    problem = graph(dict.fromkeys("abcdef", 10), edges, pair(1))
    assert names(problem) == [["ab"], ["c", "d"], ["ef"]]


def test_a_mask_that_all_layers_read_makes_no_paths() -> None:
    edges = [("m", ["b", "d"]), ("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])]
    times = {"m": 0, "a": 1000, "b": 1000, "c": 1000, "d": 1000}
    assert names(graph(times, edges, pair())) == [["a"], ["c", "mb"], ["d"]], "it goes with its first reader"
    assert names(graph(times | {"m": 500}, edges, pair())) == [["mabcd"]], "work of its own makes it a path"


def test_duet_corrects_what_the_profile_could_not_see() -> None:
    # the transfers eat up what the second device saves: the correction brings the branch back
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, DIAMOND, pair(60))
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 120


def test_a_subgraph_is_profiled_with_its_border() -> None:
    # unequal devices: y runs branch c in 40 instead of 50, but its session turns two tensors for 30 each
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, DIAMOND, pair(0))
    units = tuple(replace(unit, exec_ns={"x": unit.exec_ns["x"], "y": 40}) for unit in problem.units)
    devices = (problem.cluster.devices[0], replace(problem.cluster.devices[1], type="y"))
    paid = tuple(replace(tensor, boundary_ns={"y": 30}) for tensor in problem.tensors)
    problem = replace(problem, units=units, tensors=paid, cluster=replace(problem.cluster, devices=devices))
    found = attempt(problem, "duet", budget_s=5).evaluation
    assert found.cost == 120
    assert found.placement.device.tolist() == [0] * 4


def test_a_training_step_is_divided_by_its_forward_pass() -> None:
    problem = training()
    assert len(phases(blocks_of(problem))) == 1, "a chain"
    assert blocks_of(problem).count == 6, "each with its backward pass and its update"
