"""ETF on a case worked by hand."""

from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.placers.etf import etf_schedule
from opmark.leaderboards.scoring.attempt import attempt


def test_etf_takes_what_can_start_first() -> None:
    # a and c can start at once: c ends earlier and goes first; b may start on d1 at 10, elsewhere at 30
    problem = graph({"a": 10, "b": 5, "c": 8}, [("a", ["b"])], pair(20))
    schedule, _ = etf_schedule(problem)
    assert schedule.device.tolist() == [1, 1, 0]
    assert schedule.start_ns.tolist() == [0, 10, 0]
    assert attempt(problem, "etf", budget_s=1).evaluation.cost == 15
