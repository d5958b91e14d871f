"""FastT on the canonical graph."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import heft_canonical, pair
from tests.leaderboards.problem.decisions.test_splitting import HALVES, by, chain

from opmark.leaderboards.placers.fastt import critical_path, dpos_schedule, os_dpos
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.lists.ranks import upward_rank
from opmark.leaderboards.search.split_answers import SplitAnswers


def test_fastt_keeps_the_critical_path_together() -> None:
    problem = heft_canonical()
    assert critical_path(problem, upward_rank(problem)) == [0, 1, 8, 9], "as Topcuoglu 2002 draws it"
    schedule, _ = dpos_schedule(problem, contention=False)
    assert schedule.device[[0, 1, 8, 9]].tolist() == [1] * 4, "P2 runs it in 54, P3 in 63, P1 in 66"
    assert attempt(problem, "fastt", budget_s=5).evaluation.cost == pytest.approx(max(dpos_schedule(problem)[0].end_ns))


def test_fastt_enforces_the_order_of_its_schedule() -> None:
    solution = attempt(heft_canonical(), "fastt", budget_s=5).solution
    assert solution.order is not None
    assert sorted(name for row in solution.order.values() for name in row) == sorted(solution.device)


def test_fastt_splits_critical_operations_until_one_brings_nothing() -> None:
    # b and c are 100 of the path's 220 each. Halves of b: 55 on each device, over and back in 20, join 4: 10 + 20 + 55
    # + 20 + 4 instead of 10 + 100. Then c likewise.
    problem = replace(chain(HALVES), tensors=tuple(replace(one, size_bytes=0) for one in chain().tensors))
    answers = SplitAnswers(problem, "fastt", 60)
    assert os_dpos(problem, answers) == by("channel", "b", "c")
    found = attempt(problem, "fastt", budget_s=60)
    assert found.solution.splits == by("channel", "b", "c")
    assert found.evaluation.cost < 220
    dear = replace(problem, cluster=pair(60))
    assert attempt(dear, "fastt", budget_s=60).solution.splits is None, "over and back takes longer than half the work"
