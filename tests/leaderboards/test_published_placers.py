"""Published heuristics on cases worked by hand."""

import pytest
from tests.leaderboards.examples import canonical, graph, heft_canonical, pair

from opmark.leaderboards.attempt import attempt
from opmark.leaderboards.groups import groups_of
from opmark.leaderboards.placers.duet import phases
from opmark.leaderboards.placers.etf import etf_schedule
from opmark.leaderboards.placers.fastt import critical_path, dpos_schedule
from opmark.leaderboards.placers.heft import mean_upward_rank
from opmark.leaderboards.placers.sct import favourite_children, sct_schedule


def test_etf_takes_what_can_start_first() -> None:
    # a and c can start at once: c ends earlier and goes first; b may start on d1 at 10, elsewhere at 30
    problem = graph({"a": 10, "b": 5, "c": 8}, [("a", ["b"])], pair(20))
    schedule, _ = etf_schedule(problem)
    assert schedule.device.tolist() == [1, 1, 0]
    assert schedule.start_ns.tolist() == [0, 10, 0]
    assert attempt(problem, "etf", budget_s=1).evaluation.cost == 15


def test_sct_keeps_a_device_for_the_favourite() -> None:
    # T1's tensor for T2 takes 30, that for T3 takes 2; T2 also needs T4, which ends at 11
    problem = canonical([(10, 10, 10)] * 3 + [(11, 11, 11)], {(1, 2): 30, (1, 3): 2, (4, 2): 0})
    favourite, wake = favourite_children(problem, seconds=10)
    assert favourite[0] == 1
    assert wake[0] == 30
    sct, etf = sct_schedule(problem)[0], etf_schedule(problem)[0]
    assert sct.start_ns.tolist() == [0, 11, 12, 0]
    assert sct.device[0] == sct.device[1] != sct.device[2]
    assert max(sct.end_ns) == 22
    assert max(etf.end_ns) == 30, "without favourites T3 takes T1's device and T2 waits for it"
    assert attempt(problem, "sct", budget_s=1).evaluation.cost == 22


def test_duet_places_branches_apart() -> None:
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(20))
    assert phases(problem, groups_of(problem)) == [[[0]], [[1], [2]], [[3]]]
    # 10, then 20 to send and 50 to run the other branch, 20 back, 10
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 110


def test_duet_corrects_what_the_profile_could_not_see() -> None:
    # the transfers eat up what the second device saves: the correction brings the branch back
    problem = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(60))
    assert attempt(problem, "duet", budget_s=5).evaluation.cost == 120


def test_fastt_keeps_the_critical_path_together() -> None:
    problem = heft_canonical()
    assert critical_path(problem, mean_upward_rank(problem)) == [0, 1, 8, 9], "as Topcuoglu 2002 draws it"
    schedule, _ = dpos_schedule(problem, contention=False)
    assert schedule.device[[0, 1, 8, 9]].tolist() == [1] * 4, "P2 runs it in 54, P3 in 63, P1 in 66"
    assert attempt(problem, "fastt", budget_s=5).evaluation.cost == pytest.approx(max(dpos_schedule(problem)[0].end_ns))
