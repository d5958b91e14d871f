"""The work of each rented device: in one pass, and in a full pipeline with devices that take samples in turn."""

import numpy as np
import pytest
from tests.leaderboards.provisioning.offers import MS, diamond

from opmark.leaderboards.problem.placement import Placement, solution_of
from opmark.leaderboards.provisioning.answer import answer_of
from opmark.leaderboards.provisioning.device_work import work_of_devices
from opmark.leaderboards.provisioning.fleet import Fleet


def placed(fleet, device, *, objective, replicas=None):
    problem = diamond().problem(fleet, objective=objective)
    placement = Placement(device=np.array(device, dtype=np.int64), replicas=replicas or {})
    return answer_of(diamond(), fleet, solution_of(problem, placement), objective=objective)


def test_in_one_pass_a_device_is_busy_for_its_units_alone():
    # fast-0 runs a, b and d (1 + 5 + 1 ms), fast-1 runs c (5 ms); transfers take 1 us each
    answer = placed(Fleet.of({"fast": 2}), [0, 0, 1, 0], objective="latency")
    first, second = work_of_devices(diamond(), answer, in_a_pipeline=False)
    assert (first.device, first.units, second.device, second.units) == ("fast-0", 3, "fast-1", 1)
    assert first.busy == pytest.approx(7 * MS / answer.latency_ns)
    assert second.busy == pytest.approx(5 * MS / answer.latency_ns)
    assert first.in_turn_with == second.in_turn_with == ()


def test_in_a_pipeline_replicas_share_the_samples():
    # two slow devices take every other sample of 24 ms: one every 12 ms
    answer = placed(Fleet.of({"slow": 2}), [0, 0, 0, 0], objective="throughput", replicas={0: [1]})
    assert answer.samples_per_second == pytest.approx(1e9 / (12 * MS))
    first, second = work_of_devices(diamond(), answer, in_a_pipeline=True)
    assert (first.units, second.units) == (4, 4)
    assert (first.in_turn_with, second.in_turn_with) == (("slow-1",), ("slow-0",))
    assert first.busy == second.busy == 1.0
