"""Alternating pipelines on a pipeline worked by hand."""

from dataclasses import replace

from tests.leaderboards.examples import pipeline

from opmark.leaderboards.scoring.attempt import attempt


def test_the_pipeline_is_folded() -> None:
    problem = pipeline([5] * 8, 2)
    found = attempt(problem, "alternating-pipelines", budget_s=1).evaluation
    assert found.placement.device.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    assert found.cost == 20
    straight = attempt(replace(problem, contiguous=True), "alternating-pipelines", budget_s=1).evaluation
    assert straight.placement.device.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
