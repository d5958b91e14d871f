"""Units before others, along any path."""

from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.bounds.ancestors import ancestors_of


def test_a_unit_is_behind_all_that_its_inputs_came_from() -> None:
    problem = graph(dict.fromkeys("abcd", 1), [("a", ["b"]), ("b", ["d"]), ("c", ["d"])], pair())
    assert ancestors_of(problem.arrays).tolist() == [
        [False, False, False, False],
        [True, False, False, False],
        [False, False, False, False],
        [True, True, True, False],
    ]
