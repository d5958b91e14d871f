"""Compiled neighbours and orders, each on a case that can be seen through."""

import numpy as np
from tests.contracts.test_placers import branchy

from opmark.leaderboards.search import search_engine
from opmark.leaderboards.search.guided_search import GuidedSearch, spread_ranks
from opmark.leaderboards.search.incumbent import Incumbent


def test_neighbours_stay_where_they_can_run() -> None:
    problem = branchy(blocks=4)
    search = GuidedSearch(problem, Incumbent(problem, "mine", 10), 0)
    chosen = search.groups.allowed.argmax(axis=1).astype(np.int64)
    rank = spread_ranks(problem, None)
    rows = np.empty((200, search.groups.count), dtype=np.int64)
    ranks = np.empty((200, len(rank)), dtype=np.int64)
    hot = np.zeros(0, dtype=np.int64)
    search_engine.neighbours(3, chosen, rank, rows, ranks, 0.3, True, hot, search.tables, np.argsort(rank))
    assert search.groups.allowed[np.arange(search.groups.count), rows].all()
    assert ((rows != chosen).any(axis=1) | (ranks != rank).any(axis=1)).mean() > 0.9


def test_an_order_is_the_sequence_device_by_device() -> None:
    offsets, order = np.empty(3, dtype=np.int64), np.empty(4, dtype=np.int64)
    search_engine.order_of(np.array([1, 0, 1, 0]), np.array([2, 3, 0, 1]), offsets, order)
    assert offsets.tolist() == [0, 2, 4]
    assert order.tolist() == [3, 1, 2, 0]
