"""The programming over a frontier against every division of small problems."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.bounds.stages.test_stage_loads import every_labelling, staged, total

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.stages.frontier import Frontier
from opmark.leaderboards.bounds.stages.stage_loads import StageLoader
from opmark.leaderboards.bounds.stages.stages_bound import priced
from opmark.leaderboards.search.groups import groups_of


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_impossible_no_division_achieves_and_what_no_division_achieves_is_impossible(data) -> None:
    try:
        problem, stages, _ = data.draw(staged())
    except PlacementError:
        return
    loads = StageLoader(problem, groups_of(problem)).loads(stages)
    order = data.draw(st.permutations(range(len(loads.group))))
    frontier = Frontier(loads, order, priced(loads)[1])
    totals = np.array([total(loads, labels) for labels in every_labelling(loads)])
    costs = []
    for row in totals:
        over = [-(-int(load) // int(rate)) for load, rate in zip(row, loads.rate, strict=True) if rate]
        fits = all(load <= room for load, room, rate in zip(row, loads.room, loads.rate, strict=True) if not rate)
        costs.append(max(over) if fits else 2**61)
    best = min(costs)
    if best < 2**40:
        assert not frontier.is_impossible(best, ways_at_most=10_000)
        assert not frontier.is_impossible(best, ways_at_most=1), "merged ways allow all that they stand for"
        assert frontier.is_impossible(best - 1, ways_at_most=10_000)
    else:
        assert frontier.is_impossible(2**39, ways_at_most=10_000)


def test_a_chain_that_must_be_cut_once() -> None:
    chain = replace(
        examples.graph(dict.fromkeys("abcd", 10), [("a", ["b"]), ("b", ["c"]), ("c", ["d"])], examples.pair(3)),
        objective="throughput",
    )
    loads = StageLoader(chain, groups_of(chain)).loads([(0,), (1,)])
    frontier = Frontier(loads, range(4), priced(loads)[1])
    assert frontier.is_impossible(19, ways_at_most=100)
    assert not frontier.is_impossible(20, ways_at_most=100)
    slow = replace(chain, cluster=examples.pair(33))
    loads = StageLoader(slow, groups_of(slow)).loads([(0,), (1,)])
    frontier = Frontier(loads, range(4), priced(loads)[1])
    assert frontier.is_impossible(32, ways_at_most=100), "the link takes longer than the cut saves"
