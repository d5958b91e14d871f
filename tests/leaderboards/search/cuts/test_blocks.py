"""Blocks of colocation groups."""

from dataclasses import replace

from tests.leaderboards.examples import graph, star

from opmark.leaderboards.search.cuts.blocks import blocks_of


def test_cycles_between_classes_become_one_block() -> None:
    problem = graph(dict.fromkeys("abcd", 1), [("a", ["b"]), ("b", ["c"]), ("c", ["d"])], star())
    tied = replace(problem, units=tuple(replace(u, colocation="k" if u.name in "ac" else "") for u in problem.units))
    blocks = blocks_of(tied)
    assert blocks.of_unit.tolist() == [0, 0, 0, 1]
    assert (blocks.before, blocks.after) == ((frozenset(), frozenset({0})), (frozenset({1}), frozenset()))
    assert blocks.run_ns.tolist() == [[3, 3, 3], [1, 1, 1]]


def test_a_backward_unit_goes_with_what_it_reads() -> None:
    problem = graph(dict.fromkeys("abxy", 1), [("a", ["b", "x"]), ("b", ["y"]), ("y", ["x"])], star())
    units = tuple(replace(unit, phase="backward" if unit.name in "xy" else "forward") for unit in problem.units)
    blocks = blocks_of(replace(problem, units=units))
    assert blocks.count == 2
    assert blocks.of_unit[3] == blocks.of_unit[1], "y reads from b"
