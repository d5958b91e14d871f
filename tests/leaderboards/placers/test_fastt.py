"""FastT on the canonical graph."""

import pytest
from tests.leaderboards.examples import heft_canonical

from opmark.leaderboards.placers.fastt import critical_path, dpos_schedule
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.lists.ranks import upward_rank


def test_fastt_keeps_the_critical_path_together() -> None:
    problem = heft_canonical()
    assert critical_path(problem, upward_rank(problem)) == [0, 1, 8, 9], "as Topcuoglu 2002 draws it"
    schedule, _ = dpos_schedule(problem, contention=False)
    assert schedule.device[[0, 1, 8, 9]].tolist() == [1] * 4, "P2 runs it in 54, P3 in 63, P1 in 66"
    assert attempt(problem, "fastt", budget_s=5).evaluation.cost == pytest.approx(max(dpos_schedule(problem)[0].end_ns))
