"""Chimera runs two pipelines in steps of micro-batches, and claims nothing elsewhere."""

from tests.leaderboards.examples import pipeline

from opmark.leaderboards.scoring.attempt import attempt


def test_chimera_has_no_answer_of_its_own_without_micro_batches() -> None:
    found = attempt(pipeline([5] * 8, 2), "chimera", budget_s=1).evaluation
    assert found.placement.device.tolist() == [0] * 8
    assert found.placement.schedule == ""
