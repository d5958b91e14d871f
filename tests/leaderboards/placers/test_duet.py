"""DUET's phases, greedy placement and correction on cases worked by hand."""

from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.placers.duet import phases
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.groups import groups_of


def test_duet_places_branches_apart() -> None:
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(20))
    assert phases(problem, groups_of(problem)) == [[[0]], [[1], [2]], [[3]]]
    # 10, then 20 to send and 50 to run the other branch, 20 back, 10
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 110


def test_duet_corrects_what_the_profile_could_not_see() -> None:
    # the transfers eat up what the second device saves: the correction brings the branch back
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(60))
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 120
