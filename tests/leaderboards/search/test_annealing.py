"""Annealing runs: their answers are valid and cost what they say, and a seed repeats them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.contracts.test_placers import branchy, training

from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.contiguity import returning_unit
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.annealing import LARGEST_PENALTY_FACTOR, PENALTY_GROWTH, Annealer, Cooling, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.states import Search, State
from opmark.leaderboards.simulator.simulate import simulate_many

HOT = Cooling(temperature_first=0.3, temperature_last=0.01, penalty_first=0.5, penalty_last=20.0)


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Compile before any budget starts."""
    warm_up()


def loads(problem: Problem) -> Problem:
    return replace(problem, objective="throughput", unit="ns", memory_mode="sum")


def annealer_of(problem: Problem, seed: int = 0) -> Annealer:
    return Annealer(Search(problem, Incumbent(problem, "mine", 60)), seed)


def first_state(annealer: Annealer) -> State:
    return annealer.search.state(annealer.search.groups.allowed.argmax(axis=1).astype(np.int64))


def cost_of(annealer: Annealer, state: State) -> float:
    search = annealer.search
    priority = state.priority if search.ordered else None
    return float(simulate_many(search.problem, search.groups.spread(state.chosen[None, :]), priority)[0])


KINDS = {
    "schedules": lambda problem: problem,
    "loads": loads,
    "loads and memory": lambda problem: replace(loads(problem), memory_mode="liveness"),
    "contiguous": lambda problem: replace(loads(problem), contiguous=True),
    "contiguous schedules": lambda problem: replace(problem, contiguous=True),
    "full pipeline": lambda problem: replace(loads(problem), memory_mode="stash"),
    "full pipeline of contiguous parts": lambda problem: replace(loads(problem), memory_mode="stash", contiguous=True),
    "schedules, full pipeline": lambda problem: replace(problem, memory_mode="stash"),
    "price": lambda problem: replace(problem, objective="cost", unit="$"),
    "contention-free": lambda problem: replace(problem, profile="contention_free"),
    "multicast": lambda problem: replace(problem, profile="source_bus_multicast"),
    "serial loads": lambda problem: replace(loads(problem), profile="maxload_serial"),
}


@pytest.mark.parametrize("memory_bytes", [1100, 10**6])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_finds_what_costs_as_much_as_it_says(kind: str, memory_bytes: int) -> None:
    problem = KINDS[kind](branchy(memory_bytes=memory_bytes, blocks=5))
    if problem.objective == "cost":
        devices = tuple(replace(device, price_per_hour=1.0) for device in problem.cluster.devices)
        problem = replace(problem, cluster=replace(problem.cluster, devices=devices))
    annealer = annealer_of(problem)
    start = first_state(annealer)
    steps = 1500 if annealer.compiled else 100
    found = annealer.run(start, steps, HOT)
    assert annealer.steps == steps
    if not found.fits:  # then nothing else is claimed
        assert annealer.search.incumbent.best is None
        return
    assert cost_of(annealer, found) == found.energy
    assert found.energy <= start.energy
    kept = annealer.search.incumbent.value
    assert kept is not None
    assert math.ceil(kept) == found.energy
    if problem.contiguous:
        assert returning_unit(problem, annealer.search.groups.spread(found.chosen)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_code_judges_as_the_simulator_does(kind: str) -> None:
    annealer = annealer_of(KINDS[kind](branchy(memory_bytes=1100, blocks=5)))
    if not annealer.compiled:
        return
    search, draw = annealer.search, np.random.default_rng(0)
    for _ in range(30):
        able = [draw.choice(np.flatnonzero(row)) for row in search.groups.allowed]
        state = search.state(np.array(able, dtype=np.int64))
        tally = annealer._begin(state, 1, HOT._replace(unevenness=0.0)).state.tally[0]
        costs, excess = search.costs(search.groups.spread(state.chosen)[None, :], state.priority)
        assert tally["cost"] == costs[0]
        if math.isfinite(costs[0]):  # else nobody looks at the memory
            assert tally["excess"] == pytest.approx(excess[0])


def test_a_step_of_micro_batches_is_annealed_too() -> None:
    problem = replace(training(3), micro_batches=2, memory_mode="stash")
    annealer = annealer_of(problem)
    assert not annealer.compiled
    start = first_state(annealer)
    found = annealer.run(start, 60, HOT)
    assert found.energy <= start.energy
    assert cost_of(annealer, found) == found.energy


@pytest.mark.parametrize("kind", ["schedules", "loads", "price"])
def test_the_same_seed_repeats_a_run_whatever_the_slices(kind: str) -> None:
    problem = KINDS[kind](branchy(blocks=5))
    found = []
    for steps_per_s in (1e12, 1.0, 1e4):
        annealer = annealer_of(problem)
        annealer.steps_per_s = steps_per_s
        found.append(annealer.run(first_state(annealer), 400, HOT))
    assert [one.chosen.tolist() for one in found] == [found[0].chosen.tolist()] * 3
    assert [one.priority.tolist() for one in found] == [found[0].priority.tolist()] * 3


@pytest.mark.parametrize("kind", ["schedules", "loads"])
def test_nothing_that_does_not_fit_is_the_best(kind: str) -> None:
    annealer = annealer_of(KINDS[kind](branchy(memory_bytes=50)))
    found = annealer.run(first_state(annealer), 200, HOT)
    assert annealer.search.incumbent.best is None
    assert not found.fits
    assert np.isfinite(found.energy)


def test_a_bound_spares_simulations() -> None:
    annealer = annealer_of(branchy(blocks=6))
    cold = Cooling(reorder=0.0)
    annealer.run(annealer.run(first_state(annealer), 2000, HOT), 2000, cold)
    assert 0 < annealer.simulated < annealer.steps


def test_the_memory_penalty_rises_until_something_fits() -> None:
    annealer = annealer_of(loads(branchy(memory_bytes=50)))
    for number in range(8):
        assert annealer._penalty_factor == min(LARGEST_PENALTY_FACTOR, PENALTY_GROWTH**number)
        annealer.run(first_state(annealer), 50, HOT)
    roomy = annealer_of(loads(branchy()))
    roomy._penalty_factor = annealer._penalty_factor
    roomy.run(first_state(roomy), 50, HOT)
    assert roomy._penalty_factor == LARGEST_PENALTY_FACTOR / PENALTY_GROWTH


def test_a_descent_never_climbs() -> None:
    annealer = annealer_of(branchy(blocks=5))
    start = first_state(annealer)
    best = start
    for _ in range(5):
        found = annealer.run(best, 200, Cooling())
        assert found.energy <= best.energy
        best = found
    assert best.energy < start.energy


def test_published_chains_move_one_group_at_a_time() -> None:
    annealer = annealer_of(branchy(blocks=5))
    start = first_state(annealer)
    single = Cooling(temperature_first=1e9, temperature_last=1e9, reorder=0.0, twice=0.0, regions=False, guided=False)
    found = annealer.run(start, 1, single)
    assert (found.chosen != start.chosen).sum() <= 1


def test_every_problem_meets_the_same_compiled_code() -> None:
    """A table with a layout of its own would have the whole loop compiled once more, within somebody's budget."""
    from numba import typeof

    wide, alone = branchy(), branchy().units[0]
    only = Cluster(name="one", devices=(replace(wide.cluster.devices[1], memory_bytes=2**30),))
    shapes = (
        wide,
        replace(wide, cluster=only),
        replace(wide, units=(alone,), tensors=()),
        smallest_problem(),
        *(KINDS[kind](wide) for kind in ("loads", "contiguous", "multicast")),
    )
    assert len({typeof(annealer_of(problem)._judge) for problem in shapes}) == 1
