"""DAPPLE on pipelines worked by hand."""

from dataclasses import replace

from tests.leaderboards.examples import pipeline

from opmark.leaderboards.scoring.attempt import attempt


def test_dapple_looks_at_transfers() -> None:
    # a cut costs 50 and a device only saves 12: one stage
    assert attempt(pipeline([6, 6, 6, 6], 2, 50), "dapple", budget_s=1).evaluation.cost == 24
    assert attempt(pipeline([6, 6, 6, 6], 2, 1), "dapple", budget_s=1).evaluation.cost == 12


def test_dapple_uses_replicas_where_they_are_allowed() -> None:
    found = attempt(replace(pipeline([6, 6], 4, 1), replication=True), "dapple", budget_s=1).evaluation
    assert found.cost == 3
    assert found.placement.replicas
