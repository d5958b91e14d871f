"""The budget of a placer: it counts down and hands over answers."""

import pytest

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.submissions.budget import Budget, as_solution


def test_a_budget_counts_down_and_hands_over() -> None:
    sent: list[Solution] = []
    budget = Budget(seconds=100, seed=3, send=sent.append)
    budget.offer({"T1": "P1"})
    budget.offer(Solution(device={"T1": "P2"}))
    assert [dict(solution.device) for solution in sent] == [{"T1": "P1"}, {"T1": "P2"}]
    assert 0 < budget.left_s <= 100
    with pytest.raises(TypeError, match="not a list"):
        as_solution([])
