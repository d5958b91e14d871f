"""Splits of least maximum load, and the end of their search."""

import time
from dataclasses import replace

from tests.leaderboards.compiled_module import CompiledModule
from tests.leaderboards.examples import graph, star

from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import prefixes
from opmark.leaderboards.search.cuts.max_load_split import UNBOUNDED_NS, Splitter


def test_time_and_bound_end_a_search() -> None:
    problem = graph(dict.fromkeys("abc", 10), [("a", ["b"]), ("b", ["c"])], star())
    problem = replace(problem, profile="maxload_serial", objective="throughput", contiguous=True, memory_mode="sum")
    blocks = blocks_of(problem)
    splitter = Splitter(problem, blocks, weights_only=False)
    order = prefixes(blocks, blocks.depth_first_orders[0])
    best = splitter.solve(order, UNBOUNDED_NS)
    assert best is not None
    assert best.load_ns == 30, "a transfer of 20 costs more than it saves"
    assert splitter.solve(order, 29) is None
    assert splitter.solve(order, UNBOUNDED_NS, deadline=time.monotonic() - 1) is None
    assert splitter.states == 2 * 3, "the host pays nothing to reach itself, the others are alike"
    assert CompiledModule("opmark.leaderboards.search.cuts.ideal_programs").NEVER == INVALID_COST
