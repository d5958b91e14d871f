"""FlexFlow's chain over splits, on a chain of units worked by hand."""

from dataclasses import replace

from tests.leaderboards.examples import pair
from tests.leaderboards.problem.decisions.test_splitting import HALVES, SAMPLES, by, chain

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt


def weightless(problem: Problem) -> Problem:
    return replace(problem, tensors=tuple(replace(tensor, size_bytes=0) for tensor in problem.tensors))


def test_samples_are_divided_where_that_is_cheapest() -> None:
    # 220 on one device; both units in halves: 10, over in 20, 52 + 52, where the other half has just arrived 3 and 10
    found = attempt(weightless(chain(SAMPLES)), "flexflow-mcmc", budget_s=60, seed=1)
    assert found.evaluation.cost == 10 + 20 + 52 + 52 + 3 + 10
    assert found.solution.splits == by("sample", "b", "c")


def test_channels_are_divided_unless_transfers_eat_it_up() -> None:
    near = attempt(weightless(chain(HALVES)), "flexflow-mcmc", budget_s=60, seed=1)
    # 10, over in 20, 55, the halves of b are joined where the late one is, over in 20, 55, joined, 10
    assert near.evaluation.cost == 10 + 20 + 55 + 4 + 20 + 55 + 4 + 10
    far = replace(weightless(chain(HALVES)), cluster=pair(60))
    assert attempt(far, "flexflow-mcmc", budget_s=60, seed=1).evaluation.cost == 220
