"""Balanced stages and the cost of cuts."""

from tests.leaderboards.examples import canonical

from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, cut_ns, device_rows


def test_stages_are_cut_where_little_travels() -> None:
    problem = canonical([(4, 4, 4)] * 4, {(1, 2): 1, (2, 3): 90, (3, 4): 1})
    blocks = blocks_of(problem)
    assert device_rows(problem, blocks) == [0, 1, 2]
    assert cut_ns(problem, blocks).tolist() == [0, 1, 90, 1]
    assert balanced_stages(blocks, [0, 1]).tolist() == [0, 0, 1, 1]
    assert balanced_stages(blocks, [0, 1], boundary_ns=cut_ns(problem, blocks)).tolist() in ([0, 0, 0, 1], [0, 1, 1, 1])
