"""Moves stay where groups can run, and can be taken back."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.test_placers import branchy
from tests.leaderboards import examples
from tests.leaderboards.compiled_module import CompiledModule

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.regions import neighbourhood_of

moves = CompiledModule("opmark.leaderboards.search.moves")


def test_moves_can_be_taken_back_and_stay_where_groups_can_run() -> None:
    problem = branchy(blocks=5)
    groups, drawn = groups_of(problem), moves.moves_of(neighbourhood_of(problem), 1)
    journal = drawn.journal
    chosen = groups.allowed.argmax(axis=1).astype(np.int64)
    order = np.arange(problem.arrays.units)
    rank = order.copy()
    moved = reordered = 0
    for number in range(600):
        before = chosen.copy(), order.copy()
        journal.length[0], journal.unit[0] = 0, -1
        moves.move_groups(chosen, number % groups.count, drawn, True)
        moves.move_unit(order, rank, number % groups.count, drawn)
        assert groups.allowed[np.arange(groups.count), chosen].all()
        assert (rank[order] == np.arange(len(order))).all()
        assert not journal.mark.any(), "marks are cleared"
        moved += (chosen != before[0]).sum()
        reordered += (order != before[1]).any()
        if number % 2:
            moves.undo(chosen, order, rank, journal)
            assert chosen.tolist() == before[0].tolist()
            assert order.tolist() == before[1].tolist()
    assert moved > 600
    assert reordered > 400


@settings(max_examples=40, deadline=None)
@given(examples.problems(), st.integers(1, 2**32))
def test_neighbours_use_only_devices_that_can(problem: Problem, seed: int) -> None:
    groups, hood = groups_of(problem), neighbourhood_of(problem)
    start = groups.allowed.argmax(axis=1).astype(np.int64)
    if not len(hood.movable):
        return
    found = []
    for _ in range(2):
        rows = np.empty((16, groups.count), dtype=np.int64)
        moves.neighbour_rows(start, rows, moves.moves_of(hood, seed))
        found.append(rows)
    assert groups.allowed[np.arange(groups.count)[None, :], rows].all()
    assert (rows != start).any()
    assert (found[0] == found[1]).all()


def test_numbers_are_spread_evenly() -> None:
    random = np.array([7], dtype=np.uint64)
    drawn = [moves.below(random, 10) for _ in range(5_000)]
    assert set(drawn) == set(range(10))
    assert max(np.bincount(drawn)) < 1.3 * min(np.bincount(drawn))


def test_numbers_are_those_of_the_published_generator_compiled_or_not() -> None:
    """Both must equal xorshift64* in Python's own integers; a warning of numpy would be an error here."""
    mask, state = 2**64 - 1, 0x9E3779B97F4A7C15
    compiled, plain = (np.array([state], dtype=np.uint64) for _ in range(2))
    for _ in range(2_000):
        state ^= state >> 12
        state ^= state << 25 & mask
        state ^= state >> 27
        expected = (state * 2685821657736338717 & mask) >> 11
        # as `below` draws: its cast to an integer keeps all 53 bits
        assert moves.below(compiled, 2**53) == expected
        assert int(moves.uniform.py_func(plain) * 2**53) == expected
        assert compiled[0] == plain[0] == state
