"""States: their energies and the placements they stand for."""

from dataclasses import replace

import numpy as np
from tests.contracts.test_placers import branchy
from tests.leaderboards.examples import device, graph, pair

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.states import Search, spread_ranks
from opmark.leaderboards.simulator.simulate import simulate, simulate_many


def search_of(problem: Problem) -> Search:
    return Search(problem, Incumbent(problem, "mine", 10))


def test_energies_are_costs_where_everything_fits() -> None:
    problem = branchy()
    search = search_of(problem)
    draw = np.random.default_rng(0)
    rows = np.array([[draw.choice(np.flatnonzero(row)) for row in search.groups.allowed] for _ in range(20)])
    energies, excess = search.energies(rows, spread_ranks(problem, None)[None, :])
    assert energies.tolist() == simulate_many(problem, search.groups.spread(rows)).tolist()
    assert not excess.any()


def test_a_state_is_the_placement_it_says() -> None:
    problem = branchy(blocks=4)
    search = search_of(problem)
    draw = np.random.default_rng(1)
    for _ in range(20):
        chosen = np.array([draw.choice(np.flatnonzero(row)) for row in search.groups.allowed])
        state = search.state(chosen, draw.permutation(len(problem.units)))
        placement = search.placement(state)
        assert simulate(problem, placement).cost_ns == state.energy
        assert search.state_of(placement, priority=True).energy == state.energy


def test_too_much_memory_costs_the_more_the_worse_it_is() -> None:
    small = replace(pair(7), devices=(device("d0", memory_bytes=200), device("d1", memory_bytes=200)))
    problem = graph(dict.fromkeys("abcd", 10), [("a", ["b"]), ("b", ["c"]), ("c", ["d"])], small)
    units = tuple(replace(unit, weights=(f"w{n}",)) for n, unit in enumerate(problem.units))
    tight = replace(problem, units=units, weights={f"w{n}": 100 for n in range(4)})
    search = search_of(tight)
    all_here, three, two = (search.state(np.array(row)) for row in ([0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]))
    assert all_here.energy > three.energy > two.energy == 47
    assert (three.fits, two.fits) == (False, True)
    assert two.merit < three.merit
