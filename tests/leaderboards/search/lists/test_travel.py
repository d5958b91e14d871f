"""Travel times against the plain schedule's."""

import numpy as np
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.reference_schedule import PlainListSchedule
from tests.leaderboards.reference_schedule import mean_travel_ns as plain_mean_travel_ns

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.lists.travel import NEVER_NS, mean_travel_ns, return_ns, travel_ns


@settings(max_examples=100, deadline=None)
@given(problem=examples.problems(max_units=8))
def test_travel_is_that_of_the_plain_schedule(problem: Problem) -> None:
    plain = PlainListSchedule(problem)
    assert mean_travel_ns(problem).tolist() == plain_mean_travel_ns(plain).tolist()
    devices = range(problem.arrays.devices)
    found, home = travel_ns(problem), return_ns(problem)
    for tensor in range(len(problem.tensors)):
        for a in devices:
            assert [plain.travel_ns(tensor, a, b) for b in devices] == np.minimum(found[tensor, a], NEVER_NS).tolist()
    for unit in range(len(problem.units)):
        assert home[unit].tolist() == [plain.return_ns(unit, device) for device in devices]
