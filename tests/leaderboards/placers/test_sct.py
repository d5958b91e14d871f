"""SCT on a case worked by hand."""

from tests.leaderboards.examples import canonical

from opmark.leaderboards.placers.etf import etf_schedule
from opmark.leaderboards.placers.sct import favourite_children, sct_schedule
from opmark.leaderboards.scoring.attempt import attempt


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
