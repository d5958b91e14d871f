"""Groups of units as single units: their workspaces and their tensors."""

from dataclasses import replace

from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.making.merging import joined
from opmark.leaderboards.problem.fields import Tensor


def test_a_group_holds_the_peak_of_what_its_members_hand_to_one_another() -> None:
    problem = graph({"a": 1, "b": 2, "c": 3, "d": 4}, [], pair())
    tensors = (
        Tensor(name="x", size_bytes=7, consumers=("a",)),
        Tensor(name="ab", size_bytes=10, producer="a", consumers=("b",)),
        Tensor(name="bc", size_bytes=20, producer="b", consumers=("c",)),
        Tensor(name="ad", size_bytes=5, producer="a", consumers=("d",)),
        Tensor(name="bd", size_bytes=6, producer="b", consumers=("d",), boundary_ns={"x": 3}),
        Tensor(name="y", size_bytes=1, producer="d", output=True),
    )
    units = tuple(replace(unit, weights=(f"w{unit.name}",)) for unit in problem.units)
    weights = {"wa": 1, "wb": 2, "wc": 4, "wd": 8}
    whole = replace(problem, tensors=tensors, units=units, weights=weights)
    small = joined(whole, {"a": "a", "b": "a", "c": "a", "d": "d"})
    first, second = small.units
    assert (first.name, first.exec_ns, first.workspace_bytes) == ("a", {"x": 6}, 30)
    assert (second.name, second.workspace_bytes) == ("d", 0)
    assert small.weights == {"wa": 7, "wd": 8}
    assert {(one.producer, one.consumers, one.size_bytes) for one in small.tensors} == {
        ("", ("a",), 7),
        ("a", ("d",), 11),
        ("d", (), 1),
    }
    assert next(one for one in small.tensors if one.producer == "a").boundary_ns == {"x": 3}
    assert joined(whole, {name: name for name in "abcd"}) is whole
