"""Columns made from objects."""

from dataclasses import replace

from tests.leaderboards.examples import device, pair

from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.columns.graph_columns import columns_of, keep_columns
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

UNLIKE = Cluster(name="unlike", devices=(device("d0", "z"), device("d1", "a")), links=pair().links)
UNITS = (
    Unit(name="a", exec_ns={"z": 2.5, "a": 3.5}, colocation="tied", workspace_bytes=7),
    Unit(name="b", exec_ns={"a": 1, "absent": 9}),
    Unit(name="c", exec_ns={"z": 0}, colocation="tied"),
)
TENSORS = (
    Tensor(name="in", size_bytes=5, consumers=("a",)),
    Tensor(name="far", size_bytes=6, consumers=("a",), home="d1"),
    Tensor(name="out", size_bytes=7, producer="a", output=True, boundary_ns={"a": 1.5}),
)
PROBLEM = Problem(name="columns", cluster=UNLIKE, units=UNITS, tensors=TENSORS)


def test_types_stand_in_order_and_times_are_rounded_half_even() -> None:
    found = columns_of(PROBLEM)
    assert found.exec_ns.reshape(3, 2).tolist() == [[4, 2], [1, -1], [-1, 0]]
    assert found.boundary_ns.reshape(3, 2).tolist() == [[0, 0], [0, 0], [2, 0]]


def test_inputs_have_homes_and_classes_have_numbers() -> None:
    found = columns_of(PROBLEM)
    assert found.tensor_home.tolist() == [0, 1, -1]
    assert found.tensor_output.tolist() == [0, 0, 1]
    assert found.tensor_bytes.tolist() == [5, 6, 7]
    assert found.colocation.tolist() == [0, -1, 0]
    assert found.workspace_bytes.tolist() == [7, 0, 0]


def test_columns_that_were_read_count() -> None:
    problem = replace(PROBLEM)
    keep_columns(problem, found := columns_of(problem))
    assert columns_of(problem) is found
    assert columns_of(PROBLEM) is not found
