"""One pass by the event simulation: its schedule, and one sentence for what cannot run."""

from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.examples import graph, pair

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.rules.profile import OPSIM1
from opmark.leaderboards.simulator.events import room_for, run_events

PROBLEM = graph({"a": 10, "b": 1, "c": 1}, [("a", ["b", "c"])], pair())


def test_a_tensor_travels_once() -> None:
    schedule = run_events(PROBLEM, Placement(device=np.array([0, 1, 1])), OPSIM1)
    assert schedule.cost_ns == 32
    assert len(schedule.transfer_tensor) == 1
    assert schedule.hop_start_ns.tolist() == [10]
    assert schedule.hop_end_ns.tolist() == [30]


def test_orders_that_block_one_another_are_an_error() -> None:
    with pytest.raises(PlacementError, match="block one another"):
        run_events(PROBLEM, Placement(device=np.array([0, 0, 1]), order={0: (1, 0)}), OPSIM1)


def test_a_missing_route_names_tensor_and_device() -> None:
    apart = replace(PROBLEM, cluster=replace(PROBLEM.cluster, links=PROBLEM.cluster.links[1:]))
    with pytest.raises(PlacementError, match=r"no route brings tensor 'a\.out' to device 'd1'"):
        run_events(apart, Placement(device=np.array([0, 1, 1])), OPSIM1)


def test_there_is_room_for_every_transfer() -> None:
    room = room_for(PROBLEM.arrays)
    assert len(room.transfer_tensor) >= 2
    assert len(room.unit_end) == 3
