"""Answers over choices of splits: judged on the rewritten problem, returned by its names."""

from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.problem.decisions.test_splitting import HALVES, SAMPLES, by, chain

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.fields import Unit
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.search.split_answers import SplitAnswers, ways
from opmark.leaderboards.simulator.evaluation import evaluate


def test_the_cheapest_choice_is_kept() -> None:
    problem = replace(chain(SAMPLES), tensors=tuple(replace(one, size_bytes=0) for one in chain().tensors))
    answers = SplitAnswers(problem, "mine", 60)
    with pytest.raises(PlacementError, match="nothing that was tried fits"):
        answers.solution()
    assert answers.consider({}, Placement(device=np.zeros(4, dtype=np.int64)))
    choices = by("sample", "b", "c")
    posed = answers.posed(choices)
    assert posed is answers.posed(dict(reversed(choices.items())))
    place = np.array([unit.name.endswith("part1") for unit in posed.units], dtype=np.int64)
    assert answers.consider(choices, Placement(device=place))
    assert not answers.consider({}, Placement(device=np.ones(4, dtype=np.int64)))
    # half goes over in 20 and comes back in 20, each half takes 52 twice, then join 3
    assert answers.value == evaluate(problem, answers.solution()).cost == 10 + 20 + 104 + 20 + 3 + 10
    assert answers.solution().splits == choices


def test_units_that_are_tied_offer_nothing() -> None:
    problem = chain(HALVES)
    assert set(ways(problem)) == {"b", "c"}
    update = Unit(name="u", exec_ns={"x": 1}, weights=("w",), phase="update")
    assert not ways(replace(problem, units=(*problem.units, update)))
