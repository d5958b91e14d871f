"""Bounds of schedules hold, and tell something."""

import numpy as np
from tests.contracts.test_placers import branchy
from tests.leaderboards.compiled_module import CompiledModule

from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.states import spread_ranks
from opmark.leaderboards.simulator.simulate import simulate_many

schedules = CompiledModule("opmark.leaderboards.search.schedules")


def test_a_bound_is_never_above_the_schedule() -> None:
    problem = branchy(blocks=5)
    tables = schedules.schedules_of(problem, profile_named(problem.profile), needed=True)
    groups, draw = groups_of(problem), np.random.default_rng(0)
    rank = spread_ranks(problem, None)
    tight = 0
    for _ in range(200):
        device = groups.spread(np.array([draw.choice(np.flatnonzero(row)) for row in groups.allowed]))
        bound = schedules.least_ns(device, tables)
        cost = int(simulate_many(problem, device[None, :], enforce_memory=False)[0])
        assert schedules.simulated_ns(device, rank, tables) == cost
        assert bound <= cost
        tight += bound > 0.5 * cost
    assert tight > 100, "a bound that says next to nothing rules nothing out"
