"""Solutions: every way to be invalid has its sentence."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.examples import GIB, graph, pair

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import Unit
from opmark.leaderboards.problem.placement import Solution, load_solution, placement_of, save_solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.evaluation import evaluate


def problem() -> Problem:
    made = graph({"a": 1, "b": 1, "c": 1}, [("a", ["b"])], pair())
    units = (made.units[0], replace(made.units[1], colocation="k"), replace(made.units[2], colocation="k"))
    return replace(made, units=units)


PLACED = {"a": "d0", "b": "d1", "c": "d1"}


@pytest.mark.parametrize(
    ("solution", "sentence"),
    [
        (Solution(device={**PLACED, "a": "d7"}), "unit 'a' is placed on 'd7', which is no device"),
        (Solution(device={**PLACED, "a": float("nan")}), "unit 'a' is placed on nan"),
        (Solution(device={"a": "d0"}), "2 of 3 units have no device: b, c"),
        (Solution(device={**PLACED, "z": "d0"}), "device names 'z', which is no unit"),
        (Solution(device=["d0", "d0", "d0"]), "device must map every unit, not be a list"),
        (Solution(device={**PLACED, "c": "d0"}), "'b' and 'c' must share a device"),
        (Solution(device=PLACED, priority={"a": 1}), "2 of 3 units have no priority"),
        (Solution(device=PLACED, priority={"a": 1, "b": float("nan"), "c": 1}), "priority of unit 'b' is nan"),
        (Solution(device=PLACED, priority={"a": 1, "b": 1.5, "c": 1}), "not a whole number"),
        (Solution(device=PLACED, order={"d1": ("b",)}), "order of device 'd1' is not a permutation of its 2 units"),
        (Solution(device=PLACED, order={"d9": ("b",)}), "order names 'd9'"),
        (Solution(device=PLACED, order=("b",)), "order must map devices"),
        (Solution(device=dict.fromkeys("abc", "d0"), order={"d0": ("b", "a", "c")}), "the orders deadlock: .*b"),
    ],
)
def test_an_invalid_solution_is_named(solution: Solution, sentence: str) -> None:
    with pytest.raises(PlacementError, match=sentence):
        evaluate(problem(), solution)


def test_orders_that_block_each_other_are_named_with_their_cycle() -> None:
    crossed = graph(dict.fromkeys("abcd", 1), [("a", ["d"]), ("b", ["c"])], pair())
    places = {"a": "d0", "c": "d0", "b": "d1", "d": "d1"}
    with pytest.raises(PlacementError, match="→") as caught:
        evaluate(crossed, Solution(device=places, order={"d0": ("c", "a"), "d1": ("d", "b")}))
    assert {"a", "b", "c", "d"} <= set(caught.value.message)


def test_an_unsupported_device_and_full_memory_are_named() -> None:
    small = replace(problem(), units=(Unit(name="a", exec_ns={"x": 1}, workspace_bytes=3 * GIB), *problem().units[1:]))
    with pytest.raises(PlacementError, match=r"device 'd0' needs 3\.00 GiB at its peak and has 1\.00 GiB"):
        evaluate(small, Solution(device=PLACED))
    devices = (pair().devices[0], replace(pair().devices[1], type="y"))
    mixed = replace(problem(), cluster=replace(pair(), devices=devices))
    with pytest.raises(PlacementError, match="device 'd1' cannot run unit 'b'"):
        evaluate(mixed, Solution(device=PLACED))


def test_names_and_numbers_convert_both_ways(tmp_path: Path) -> None:
    solution = Solution(
        device=PLACED, priority={"a": 3, "b": 2, "c": 1}, order={"d1": ("b", "c")}, problem="worked", placer="me"
    )
    assert solution_of(problem(), placement_of(problem(), solution), placer="me") == solution
    save_solution(solution, tmp_path / "solution.json")
    assert load_solution(tmp_path / "solution.json") == solution
