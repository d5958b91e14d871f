"""The compiled loop: a verdict decides, a rejected proposal leaves no trace, and the limit follows the temperature."""

import numpy as np
import pytest
from tests.leaderboards.compiled_module import CompiledModule
from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.search.annealing import Annealer, Cooling
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.states import Search

annealing_loop = CompiledModule("opmark.leaderboards.search.annealing_loop")

PROBLEM = graph(
    dict.fromkeys("abcdef", 5), [("a", ["b", "c"]), ("b", ["d"]), ("c", ["e"]), ("d", ["f"]), ("e", ["f"])], pair(3)
)


def begun(cooling: Cooling) -> "annealing_loop.Run":
    search = Search(PROBLEM, Incumbent(PROBLEM, "test", 60.0))
    annealer = Annealer(search, 3)
    return annealer._begin(search.state(np.zeros(6, dtype=np.int64)), 1000, cooling)


def test_a_rejected_proposal_leaves_no_trace() -> None:
    run = begun(Cooling())
    for _ in range(200):
        chosen, device, order = (run.state.chosen.copy(), run.state.device.copy(), run.state.order.copy())
        if annealing_loop.propose(run):
            annealing_loop.decide(run, annealing_loop.REJECTED)
            assert np.array_equal(run.state.chosen, chosen)
            assert np.array_equal(run.state.device, device)
            assert np.array_equal(run.state.order, order)
    assert np.array_equal(run.state.order[run.state.rank], np.arange(6))


def test_without_a_temperature_the_cost_never_rises() -> None:
    run = begun(Cooling())
    costs = []
    for _ in range(50):
        annealing_loop.anneal(run, 20)
        costs.append(float(run.state.tally[0]["cost"]))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 30  # all six units in a row on one device


@pytest.mark.parametrize(("share", "expected"), [(0, 0.1), (500, 0.01), (1000, 0.001)])
def test_the_temperature_falls_geometrically(share: int, expected: float) -> None:
    run = begun(Cooling(temperature_first=0.1, temperature_last=0.001))
    run.state.tally["step"] = share
    annealing_loop.cool(run)
    assert float(run.state.tally[0]["temperature"]) == pytest.approx(expected)
