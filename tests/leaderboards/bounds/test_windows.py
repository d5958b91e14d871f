"""Heads and tails by hand, and against every schedule of small problems."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import graph, pair

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.relaxation import NEVER_NS
from opmark.leaderboards.bounds.windows import windows_of
from opmark.leaderboards.problem.placement import Solution, placement_of
from opmark.leaderboards.simulator.simulate import simulate


def test_heads_and_tails_follow_the_shortest_way_over_devices():
    chain = graph({"a": 10, "b": 20, "c": 5}, [("a", ["b"]), ("b", ["c"])], pair(3))
    fast = replace(chain.units[1], exec_ns={"x": 20})
    found = windows_of(replace(chain, units=(chain.units[0], fast, chain.units[2])))
    assert found.head_ns.tolist() == [[0, 0], [10, 10], [30, 30]]
    assert found.tail_ns.tolist() == [[25, 25], [5, 5], [0, 0]]
    assert found.least_ns(chain.arrays.run_ns) == 35


def test_an_input_of_the_host_travels_first_and_an_output_travels_back():
    from opmark.leaderboards.problem.fields import Tensor, Unit
    from opmark.leaderboards.problem.problem import Problem

    problem = Problem(
        name="ends",
        cluster=pair(7),
        units=(Unit(name="a", exec_ns={"x": 10}),),
        tensors=(
            Tensor(name="in", size_bytes=0, consumers=("a",)),
            Tensor(name="out", size_bytes=0, producer="a", output=True),
        ),
    )
    found = windows_of(problem)
    assert found.head_ns.tolist() == [[0, 7]]
    assert found.tail_ns.tolist() == [[0, 7]]


@settings(max_examples=60, deadline=None)
@given(examples.placed(max_units=6))
def test_no_schedule_starts_a_unit_before_its_head_or_ends_before_its_tail(case):
    problem, places = case
    problem = replace(problem, objective="latency")
    try:
        placement = placement_of(problem, Solution(device=places))
        schedule = simulate(problem, placement)
        found = windows_of(problem)
    except PlacementError:
        return
    device = placement.device
    units = np.arange(len(device))
    head, tail = found.head_ns[units, device], found.tail_ns[units, device]
    assert (head < NEVER_NS).all()
    assert (schedule.unit_start_ns >= head).all()
    run = problem.arrays.run_ns[units, device]
    assert (schedule.unit_start_ns + run + tail <= schedule.latency_ns).all()
