"""Ranks as the papers print them, and the orders that follow from them."""

import numpy as np
from tests.leaderboards import examples
from tests.leaderboards.examples import heft_canonical, peft_canonical

from opmark.leaderboards.search.lists.ranks import (
    downward_rank,
    falling_order,
    optimistic_cost_table,
    ready_order,
    upward_rank,
)


def test_ranks_of_the_canonical_graph() -> None:
    # the paper prints these ranks with fractions; means are whole ns here
    up, down = upward_rank(heft_canonical()), downward_rank(heft_canonical())
    assert np.abs(up - [108, 77, 80, 80, 69, 63.3, 42.7, 35.7, 44.3, 14.7]).max() <= 1
    assert np.abs(down - [0, 31, 25, 22, 24, 27, 62.3, 66.7, 63.7, 93.3]).max() <= 1


def test_the_optimistic_cost_table() -> None:
    assert optimistic_cost_table(peft_canonical())[0].tolist() == [64, 68, 86]


def test_equal_ranks_stand_in_topological_order() -> None:
    problem = examples.graph(dict.fromkeys("abc", 1), [("c", ["b"])], examples.pair())
    assert falling_order(problem, np.array([5, 5, 5])).tolist() == problem.arrays.topological.tolist()
    assert falling_order(problem, np.array([1, 9, 5])).tolist() == [1, 2, 0]


def test_a_ready_list_releases_the_largest_priority_first() -> None:
    problem = examples.graph(dict.fromkeys("abcd", 1), [("a", ["c"]), ("b", ["d"])], examples.pair())
    assert ready_order(problem, np.array([5, 1, 9, 3])).tolist() == [0, 2, 1, 3]
    assert ready_order(problem, np.array([0.5, 0.6, 9.0, 0.1])).tolist() == [1, 0, 2, 3]
