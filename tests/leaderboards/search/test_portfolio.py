"""The portfolio: rounds end, starts differ, what fits comes first."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from tests.contracts.test_placers import branchy
from tests.leaderboards.search.test_annealing import annealer_of, first_state, loads

from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.portfolio import APART, ELITES, anneal_in_rounds, elite, enumerated, unlike
from opmark.leaderboards.search.states import Search
from opmark.leaderboards.simulator.simulate import simulate_many


def test_rounds_end_when_told_and_when_enough_was_tried() -> None:
    annealer = annealer_of(branchy(blocks=2))
    start = first_state(annealer)
    assert anneal_in_rounds(annealer, [start], 0, stop=lambda: True) == [start]
    assert annealer.steps == 0
    found = anneal_in_rounds(annealer, [start], 0, stop=lambda: annealer.steps > 2000)
    assert found[0].energy <= start.energy
    assert len(found) <= ELITES
    assert [one.energy for one in elite(found)] == sorted({one.energy for one in found})
    small = annealer_of(branchy(blocks=1))
    anneal_in_rounds(small, [first_state(small)], 0)
    assert small.search.incumbent.left_s > 0, "small problems end before their budget"


def test_what_fits_comes_before_what_is_cheaper() -> None:
    search = annealer_of(loads(branchy(memory_bytes=1100, blocks=6))).search
    rows = np.random.default_rng(0).integers(0, 2, size=(40, search.groups.count))
    states = [search.state(row) for row in rows]
    fit = [state for state in states if state.fits]
    assert 0 < len(fit) < len(states)
    best = elite([*states, search.state(np.ones_like(rows[0]))])
    assert best[0].energy == min(state.energy for state in fit)


def test_starts_are_unlike_one_another() -> None:
    annealer = annealer_of(branchy(blocks=6))
    draw = np.random.default_rng(0)
    states = [first_state(annealer)]
    for _ in range(20):
        chosen = states[-1].chosen.copy()
        chosen[draw.choice(np.flatnonzero(annealer.search.groups.allowed[:, 1]))] = 1
        states.append(annealer.search.state(chosen))
    found = unlike(states, 4)
    assert 1 < len(found) <= 4
    assert found[0].energy == min(state.energy for state in states)
    assert all((a.chosen != b.chosen).mean() >= APART for a, b in combinations(found, 2))


def test_few_placements_are_all_tried() -> None:
    problem = branchy(blocks=2)
    incumbent = Incumbent(problem, "mine", 60)
    search = Search(problem, incumbent)
    able = [np.flatnonzero(row) for row in search.groups.allowed]
    rows = np.array(np.meshgrid(*able)).reshape(len(able), -1).T
    best = enumerated(search)
    assert best[0].energy == incumbent.value == simulate_many(problem, search.groups.spread(rows)).min()
    large = replace(branchy(blocks=9), name="large")
    assert enumerated(Search(large, Incumbent(large, "mine", 60))) == []
