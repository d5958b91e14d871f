"""Compiled walks: what they say a placement costs, that they keep to memory, and where their bounds hold."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from tests.contracts.test_placers import branchy

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search import load_walk, schedule_walk, walk_moves
from opmark.leaderboards.search.guided_search import GuidedSearch
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.walk_rounds import APART, ELITES, elite, unlike, walk_in_rounds
from opmark.leaderboards.search.walks import STIFFENED, STIFFEST, Style, Walks, warm_up_walks
from opmark.leaderboards.simulator.simulate import costs_and_peaks, simulate, simulate_many

HOT = Style(heats=(0.3, 0.01), stiffness=(0.5, 20.0))


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Compiling is nobody's planning time."""
    warm_up_walks()


def loads(problem: Problem) -> Problem:
    return replace(problem, objective="throughput", unit="ns", memory_mode="sum")


def walks_of(problem: Problem, budget_s: float = 60) -> Walks:
    return Walks(GuidedSearch(problem, Incumbent(problem, "mine", budget_s), 0), 0)


def first_state(walks: Walks):
    return walks.search.state(walks.search.groups.allowed.argmax(axis=1).astype(np.int64))


@pytest.mark.parametrize("memory_bytes", [1100, 10**6])
@pytest.mark.parametrize("make", [loads, lambda problem: problem], ids=["loads", "schedules"])
def test_a_walk_finds_what_costs_as_much_as_it_says(make, memory_bytes: int) -> None:
    problem = make(branchy(memory_bytes=memory_bytes, blocks=6))
    walks = walks_of(problem)
    start = first_state(walks)
    found = walks.walk(start, 3000, HOT)
    assert walks.compiled
    assert walks.steps == 3000
    priority = None if walks.by_loads else found.priority
    assert simulate_many(problem, walks.search.groups.spread(found.chosen[None, :]), priority).tolist() == [
        found.energy
    ]
    assert found.energy < start.energy
    kept = walks.search.incumbent.value
    assert kept is not None
    assert math.ceil(kept) == found.energy


@pytest.mark.parametrize("make", [loads, lambda problem: problem], ids=["loads", "schedules"])
def test_the_same_seed_walks_the_same_way(make) -> None:
    problem = make(branchy(blocks=6))
    found = []
    for _ in range(2):
        walks = walks_of(problem)
        walks.steps_per_s = 1e12  # one slice, however fast the machine is
        found.append(walks.walk(first_state(walks), 400, HOT))
    assert found[0].chosen.tolist() == found[1].chosen.tolist()
    assert found[0].energy == found[1].energy


def test_a_strict_walk_keeps_the_order_of_priorities() -> None:
    problem = branchy(blocks=4)
    walks = walks_of(problem)
    start = walks.search.state(first_state(walks).chosen, strict=True)
    found = walks.walk(start, 1000, HOT)
    assert found.strict
    assert simulate(problem, walks.search.placement(found)).cost_ns == found.energy


def test_loads_kept_up_to_date_are_those_counted_anew() -> None:
    problem = loads(branchy(blocks=6))
    walks = walks_of(problem)
    search = walks.search
    row, best = first_state(walks).chosen.copy(), first_state(walks).chosen.copy()
    weights, limits = np.array([8.0, 8.0, 0.05]), problem.arrays.device_memory_bytes
    for seed in range(30):
        # a walk so hot that it takes every step ends where those steps lead; a walk of no step says what that costs
        load_walk.walk_loads(
            seed,
            50,
            np.array([1e9, 1e9]),
            weights,
            *problem.arrays.packed,
            np.array([1]),
            limits,
            search.tables,
            row,
            best,
        )
        again = row.copy()
        said = load_walk.walk_loads(
            0,
            1,
            np.array([0.0, 0.0]),
            weights,
            *problem.arrays.packed,
            np.array([1]),
            limits,
            search.tables,
            again,
            best,
        )
        costs, _ = costs_and_peaks(problem, search.groups.spread(np.array([row, best])))
        assert said == costs[1] <= costs[0]


@pytest.mark.parametrize("make", [loads, lambda problem: problem], ids=["loads", "schedules"])
def test_nothing_that_does_not_fit_is_the_best(make) -> None:
    walks = walks_of(make(branchy(memory_bytes=50)))
    found = walks.walk(first_state(walks), 200, HOT)
    assert walks.search.incumbent.best is None
    assert np.isfinite(found.energy)


def test_a_bound_is_never_above_the_schedule() -> None:
    problem = branchy(blocks=5)
    walks = walks_of(problem)
    arrays, draw = problem.arrays, np.random.default_rng(0)
    graph = (
        arrays.input_offsets,
        arrays.input_tensors,
        arrays.tensor_producer,
        arrays.tensor_home,
        arrays.device_slots,
    )
    topological, run, travel, tails, _ = walks._bounding
    tight = 0
    for _ in range(200):
        chosen = np.array([draw.choice(np.flatnonzero(row)) for row in walks.search.groups.allowed])
        unit_device = walks.search.groups.spread(chosen)
        room = [
            np.zeros(size, dtype=np.int64) for size in (arrays.units, arrays.devices, arrays.devices, arrays.devices)
        ]
        bound = schedule_walk.least_ns(unit_device, topological, run, travel, graph, tails, tuple(room))
        cost = int(simulate_many(problem, unit_device[None, :], enforce_memory=False)[0])
        assert bound <= cost
        tight += bound > 0.5 * cost
    assert tight > 100, "a bound that says next to nothing rules nothing out"


def test_what_a_bound_rules_out_is_not_simulated() -> None:
    walks = walks_of(branchy(blocks=6))
    walks.walk(walks.walk(first_state(walks), 2000, HOT), 2000, Style(reorder=0.0))
    assert 0 < walks.simulated < walks.steps


def test_moves_can_be_taken_back_and_stay_where_groups_can_run() -> None:
    walks = walks_of(branchy(blocks=5))
    groups, tables = walks.search.groups, walks.search.tables
    chosen = first_state(walks).chosen.copy()
    journal = tuple(np.zeros(2 * groups.count + 2, dtype=np.int64) for _ in range(5))
    moved = 0
    for number in range(300):
        before = chosen.copy()
        count = walk_moves.move(chosen, number % groups.count, tables, 3, True, journal, 0)
        assert groups.allowed[np.arange(groups.count), chosen].all()
        moved += (chosen != before).sum()
        assert not journal[3].any(), "marks are cleared"
        if number % 2:
            walk_moves.undo(chosen, journal, count)
            assert chosen.tolist() == before.tolist()
    assert moved > 300


def test_rounds_end_when_told_and_when_enough_was_tried() -> None:
    walks = walks_of(branchy(blocks=2))
    start = first_state(walks)
    assert walk_in_rounds(walks, [start], 0, stop=lambda: True) == [start]
    assert walks.steps == 0
    found = walk_in_rounds(walks, [start], 0, stop=lambda: walks.steps > 2000)
    assert found[0].energy <= start.energy
    assert len(found) <= ELITES
    assert [one.energy for one in elite(walks.search, found)] == sorted({one.energy for one in found})


def test_what_fits_comes_before_what_is_cheaper() -> None:
    walks = walks_of(loads(branchy(memory_bytes=1100, blocks=6)))
    rows = np.random.default_rng(0).integers(0, 2, size=(40, walks.search.groups.count))
    states = [walks.search.state(row) for row in rows]
    fit = [state for state in states if walks.search.fits(state)]
    assert 0 < len(fit) < len(states)
    best = elite(walks.search, [*states, walks.search.state(np.ones_like(rows[0]))])
    assert best[0].energy == min(state.energy for state in fit)


def test_memory_counts_for_more_until_something_fits() -> None:
    walks = walks_of(loads(branchy(memory_bytes=50)))
    for number in range(8):
        assert walks._stiffer == min(STIFFEST, STIFFENED**number)
        walks.walk(first_state(walks), 50, HOT)
    roomy = walks_of(loads(branchy()))
    roomy._stiffer = walks._stiffer
    roomy.walk(first_state(roomy), 50, HOT)
    assert roomy._stiffer == STIFFEST / STIFFENED


def test_starts_are_unlike_one_another() -> None:
    walks = walks_of(branchy(blocks=6))
    draw = np.random.default_rng(0)
    states = [first_state(walks)]
    for _ in range(20):
        chosen = states[-1].chosen.copy()
        movable = draw.choice(np.flatnonzero(walks.search.groups.allowed[:, 1]))
        chosen[movable] = 1
        states.append(walks.search.state(chosen))
    found = unlike(walks.search, states, 4)
    assert 1 < len(found) <= 4
    assert found[0].energy == min(state.energy for state in states)
    assert all((a.chosen != b.chosen).mean() >= APART for a, b in combinations(found, 2))


def test_problems_without_compiled_walks_say_so() -> None:
    problem = branchy(blocks=2)
    assert not walks_of(replace(problem, contiguous=True)).compiled
    assert not walks_of(replace(loads(problem), memory_mode="liveness")).compiled
    assert not walks_of(replace(problem, objective="cost", unit="$")).compiled
