"""Splits worked by hand: parts, cuts and joins are paid for, and nothing else changes."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import device, graph, heft_canonical, pair

from opmark.core.errors import ContentError, PlacementError
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.relaxation import part_ns, work_ns
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.decisions.decided import decided
from opmark.leaderboards.problem.fields import Tensor, Unit, UnitSplit
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Solution, SplitChoice, load_solution, save_solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import row_of, solution_in
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace

HALVES = UnitSplit(axis="channel", parts=2, exec_ns={"x": 55}, join_ns={"x": 4}, weight_share=0.5)
SAMPLES = UnitSplit(axis="sample", parts=2, exec_ns={"x": 52}, join_ns={"x": 3}, input_share=0.5)
ROWS = UnitSplit(axis="row", parts=2, exec_ns={"x": 60}, join_ns={"x": 2}, cut_ns={"x": 1}, input_share=0.6)


def chain(*splits: UnitSplit, **facts) -> Problem:
    """a (10) feeds b (100) feeds c (100) feeds d (10); b and c can be split. 100 bytes between them, links take 20."""
    problem = graph({"a": 10, "b": 100, "c": 100, "d": 10}, [("a", ["b"]), ("b", ["c"]), ("c", ["d"])], pair(20))
    units = tuple(
        replace(unit, splits=splits, weights=("w",), workspace_bytes=11) if unit.name in "bc" else unit
        for unit in problem.units
    )
    tensors = tuple(replace(tensor, size_bytes=100) for tensor in problem.tensors)
    return replace(problem, units=units, tensors=tensors, weights={"w": 9}, **facts)


def by(axis: str, *units: str) -> dict[str, SplitChoice]:
    return {unit: SplitChoice(axis=axis, parts=2) for unit in units}


def test_halves_and_concatenation_are_paid_for() -> None:
    here = {"a": "d0", "c": "d0", "d": "d0"}
    parts = {"b/part0": "d0", "b/part1": "d1", "b/join": "d0"}
    found = evaluate(chain(HALVES), Solution(device={**here, **parts}, splits=by("channel", "b")))
    # a 10; 100 bytes in 20 + 100 to the other half, which ends at 185 and needs 20 + 50 back; join 4, c 100, d 10
    assert found.cost == 10 + 120 + 55 + 70 + 4 + 100 + 10
    posed = found.posed(chain(HALVES))
    assert [unit.name for unit in posed.units] == ["a", "b/part0", "b/part1", "b/join", "c", "d"]
    assert [posed.weights[unit.weights[0]] for unit in posed.units if unit.weights] == [5, 5, 9]
    assert {tensor.size_bytes for tensor in posed.tensors if tensor.producer.startswith("b/part")} == {50}
    assert [unit.workspace_bytes for unit in posed.units] == [0, 6, 6, 0, 11, 0]


def test_neighbours_hand_on_samples_part_to_part() -> None:
    device_of = {"a": "d0", "d": "d0", "c/join": "d0"}
    device_of |= {f"{unit}/part{number}": f"d{number}" for unit in "bc" for number in (0, 1)}
    found = evaluate(chain(SAMPLES), Solution(device=device_of, splits=by("sample", "b", "c")))
    # half the samples go over in 20 + 50 and are worked on twice, half the answers come back in 70
    assert found.cost == 10 + 70 + 52 + 52 + 70 + 3 + 10
    names = {unit.name for unit in found.posed(chain(SAMPLES)).units}
    assert "b/join" not in names
    assert "b/cut" not in names


def test_windows_overlap_and_cuts_take_time() -> None:
    device_of = {"a": "d0", "d": "d0", "c": "d0", "b/cut": "d0", "b/join": "d0", "b/part0": "d0", "b/part1": "d1"}
    found = evaluate(chain(ROWS), Solution(device=device_of, splits=by("row", "b")))
    assert found.cost == 10 + 1 + (20 + 60) + 60 + (20 + 50) + 2 + 100 + 10


def test_a_solution_without_splits_is_what_it_was() -> None:
    problem = chain()
    solution = Solution(device=dict.fromkeys("abcd", "d0"))
    assert decided(problem, solution) == (problem, solution)
    assert "splits" not in row_of(solution, problem)
    assert heft_canonical().id == "653e8923e40a4b19", "the identity that this problem had before units could be split"
    assert problem.id != chain(HALVES).id, "what can be decided is part of a problem"


def test_files_keep_splits(tmp_path) -> None:
    problem = chain(HALVES, ROWS)
    save_problem(problem, tmp_path / "p.json")
    assert load_problem(tmp_path / "p.json").units == problem.units
    parts = {"b/part0": "d0", "b/part1": "d1", "b/join": "d0"}
    solution = Solution(device={"a": "d0", "c": "d0", "d": "d0", **parts}, splits=by("channel", "b"), problem="worked")
    save_solution(solution, tmp_path / "s.json")
    assert load_solution(tmp_path / "s.json", problem) == solution
    assert solution_in(row_of(solution, problem), problem) == solution
    evaluation = evaluate(problem, solution)
    trace = chrome_trace(problem, evaluation)
    assert check_trace(problem, trace) == evaluation.cost


@pytest.mark.parametrize(
    ("splits", "reason"),
    [
        (by("channel", "a"), "unit 'a' cannot be split into 2 by 'channel': it offers none"),
        (by("row", "b"), "unit 'b' cannot be split into 2 by 'row': it offers 2 by channel"),
        (by("channel", "z"), "splits names 'z', which is no unit of the problem"),
    ],
)
def test_only_what_a_unit_offers_can_be_chosen(splits, reason: str) -> None:
    with pytest.raises(PlacementError, match=reason):
        evaluate(chain(HALVES), Solution(device={}, splits=splits))


def test_parts_must_be_placed_like_units() -> None:
    with pytest.raises(PlacementError, match="units have no device: b/part0, b/part1, b/join"):
        evaluate(chain(HALVES), Solution(device=dict.fromkeys("acd", "d0"), splits=by("channel", "b")))
    with pytest.raises(PlacementError, match=r"device names 'b/part0', which is no unit"):
        evaluate(chain(HALVES), Solution(device={**dict.fromkeys("abcd", "d0"), "b/part0": "d0"}))


def test_what_is_tied_to_a_device_cannot_be_split() -> None:
    trained = chain(HALVES)
    update = Unit(name="u", exec_ns={"x": 1}, weights=("w",), phase="update")
    trained = replace(trained, units=(*trained.units, update))
    with pytest.raises(PlacementError, match="unit 'b' shares a device with others"):
        evaluate(trained, Solution(device={}, splits=by("channel", "b")))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"axis": "depth"}, "axis: one of sample, row, channel, not 'depth'"),
        ({"parts": 1}, "parts: must be from 2 to 64, not 1"),
        ({"exec_ns": {}}, "exec_ns: a time for at least one device type is needed"),
        ({"exec_ns": {"x": -1}}, r"exec_ns\.x: must be a number of ns"),
        ({"exec_ns": {"y": 1}}, "the unit has no exec_ns for 'y'"),
        ({"weight_share": 0.4}, "weight_share: must be from 1 / parts to 1, not 0.4"),
        ({"cut_ns": {"x": 1}}, "cut_ns: parts that read whole inputs have nothing to cut"),
    ],
)
def test_wrong_splits_are_named(change, reason: str) -> None:
    with pytest.raises(ContentError, match=reason):
        checked(chain(replace(HALVES, **change)), "here")


def test_bounds_hold_whatever_is_split() -> None:
    # halves of b and c on two devices, links that take no time: 10 + 55 + 4 + 55 + 4 + 10, far below the whole path
    quick = replace(chain(HALVES), cluster=pair(0))
    quick = replace(quick, tensors=tuple(replace(tensor, size_bytes=0) for tensor in quick.tensors))
    device_of = {"a": "d0", "d": "d0", "b/join": "d0", "c/join": "d0"}
    device_of |= {f"{unit}/part{number}": f"d{number}" for unit in "bc" for number in (0, 1)}
    cost = evaluate(quick, Solution(device=device_of, splits=by("channel", "b", "c"))).cost
    assert cost == 138
    found = bounds(quick, solver_s=1.0)
    assert max(found.values()) <= cost
    assert found["critical_path"] == 10 + 55 + 55 + 10
    assert not {"solver", "intervals"} & found.keys(), "they know whole units only"
    assert part_ns(quick)[:, 0].tolist() == [10, 55, 55, 10]
    assert work_ns(quick)[:, 0].tolist() == [10, 100, 100, 10]


def test_inputs_and_outputs_of_the_graph_are_cut_and_joined_too() -> None:
    unit = Unit(name="b", exec_ns={"x": 100}, splits=(SAMPLES,))
    tensors = (
        Tensor(name="in", size_bytes=10, consumers=("b",)),
        Tensor(name="out", size_bytes=10, producer="b", output=True),
    )
    cluster = replace(pair(20), devices=(device("d0"), device("d1")))
    problem = Problem(name="one", cluster=cluster, units=(unit,), tensors=tensors)
    parts = {"b/part0": "d0", "b/part1": "d1", "b/join": "d0"}
    assert evaluate(problem, Solution(device=parts, splits=by("sample", "b"))).cost == 25 + 52 + 25 + 3
