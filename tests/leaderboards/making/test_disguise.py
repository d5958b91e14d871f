"""Algorithms that use structure and costs do equally well on a disguised problem."""

from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical
from tests.leaderboards.problem.decisions.test_splitting import HALVES, chain

from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.submissions.check import SAME_UNTIL


def without_ties(problem: Problem) -> Problem:
    """The problem with no two times or sizes alike, so that no name decides what comes first."""
    draw = np.random.default_rng(3)
    units = tuple(
        replace(unit, exec_ns={key: 1000 * ns + int(draw.integers(200)) for key, ns in unit.exec_ns.items()})
        for unit in problem.units
    )
    tensors = tuple(
        replace(tensor, size_bytes=1000 * tensor.size_bytes + int(draw.integers(200))) for tensor in problem.tensors
    )
    return replace(problem, units=units, tensors=tensors)


@pytest.mark.parametrize("name", ["best-single-device", "cpop", "duet", "etf", "fastt", "heft", "peft", "sct"])
def test_a_baseline_costs_the_same_on_an_isomorphic_copy(name: str) -> None:
    for problem in map(without_ties, (heft_canonical(), peft_canonical())):
        cost = attempt(problem, name, budget_s=20).evaluation.cost
        for seed in range(3):
            copy = disguise(problem, "copy", np.random.default_rng(seed), rescale=0)
            other = attempt(copy, name, budget_s=20).evaluation.cost
            assert abs(other - cost) <= SAME_UNTIL * cost


def test_the_parts_of_a_disguised_unit_cost_what_they_did() -> None:
    problem = chain(HALVES)
    masked = disguise(problem, "masked", np.random.default_rng(3), rescale=0.0)
    assert sum(bool(unit.splits) for unit in masked.units) == 2
    kind = masked.cluster.devices[0].type
    assert all(split.exec_ns == {kind: 55} for unit in masked.units for split in unit.splits)
