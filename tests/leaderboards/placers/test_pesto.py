"""Pesto's integer program on cases with known optima."""

from tests.leaderboards.examples import peft_canonical, pipeline

from opmark.leaderboards.scoring.attempt import attempt


def test_pesto_orders_and_places_at_once() -> None:
    assert attempt(peft_canonical(), "pesto", budget_s=20).evaluation.cost == 113


def test_pesto_balances_loads() -> None:
    assert attempt(pipeline([3, 3, 2, 2, 2], 2), "pesto", budget_s=10).evaluation.cost == 6
