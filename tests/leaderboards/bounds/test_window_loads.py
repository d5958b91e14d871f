"""Rows between heads and tails, by hand."""

import numpy as np
import pytest
from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.bounds.solver_bound import solver_bound, window_rows
from opmark.leaderboards.bounds.window_loads import WindowLoads
from opmark.leaderboards.bounds.windows import windows_of

# After a, four units that only the end joins: two devices share them, but not a and not f.
FORK = graph(
    {"a": 10, **dict.fromkeys("bcde", 10), "f": 10},
    [("a", list("bcde")), *((name, ["f"]) for name in "bcde")],
    pair(0),
)


def test_work_between_a_head_and_a_tail_fits_in_between() -> None:
    loads = WindowLoads(FORK, windows_of(FORK))
    halves = np.full((6, 2), 0.5)
    (row, *_) = loads.violated(halves, 30.0)
    assert (row.device, row.slots, row.around_ns, row.units) == (0, 1, 20, (1, 2, 3, 4))
    assert loads.violated(halves, 40.0) == []


def test_a_proved_cost_allows_more_rows() -> None:
    loads = WindowLoads(FORK, windows_of(FORK))
    assert loads.least_ns in {39, 40}, "a, half of the fork, and f; rounded down"
    loads.raise_to(2e6)
    assert loads.least_ns == pytest.approx(2e6, rel=1e-5)


def test_the_program_finds_the_rows() -> None:
    assert solver_bound(FORK, seconds=10) == 39, "40, less the solver's tolerance"
    assert all(row.around_ns <= 40 for row in window_rows(FORK, 60, seconds=5))
