"""Local search beats its starts and keeps its budget."""

from tests.leaderboards.examples import graph, heft_canonical, peft_canonical, star

from opmark.leaderboards.scoring.attempt import attempt


def test_local_search_beats_its_starts() -> None:
    costs = {name: attempt(heft_canonical(), name, budget_s=20).evaluation.cost for name in ("heft", "local-search")}
    assert costs["local-search"] < costs["heft"]


def test_local_search_returns_its_best_when_time_is_up() -> None:
    assert attempt(peft_canonical(), "local-search", budget_s=0).evaluation.cost <= 140


def test_nothing_to_decide_is_fine() -> None:
    alone = graph({"a": 5, "b": 5}, [("a", ["b"])], star(devices=1))
    assert attempt(alone, "local-search", budget_s=1).evaluation.cost == 10
