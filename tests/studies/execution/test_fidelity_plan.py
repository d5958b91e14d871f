"""The order of a fidelity run's problems, and what its budget allows."""

import math

from opmark.models.source import source_of
from opmark.studies.execution.fidelity_pace import RunPace
from opmark.studies.execution.fidelity_plan import CLUSTERS, MODELS, PLACERS, FidelityPlan


class Clock:
    """A clock that goes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_usual_plan_is_large_enough_and_names_networks_that_exist() -> None:
    found = list(FidelityPlan().problems())
    assert len(found) == len({name for name, _, _ in found}) == len(MODELS) * len(CLUSTERS) >= 24
    assert len(PLACERS) >= 8
    assert all(source_of(model).name for model in MODELS)


def test_every_network_and_every_cluster_comes_early() -> None:
    plan = FidelityPlan(models=("a", "b@bf16", "c", "d"), clusters=("2onnx", "2torch"))
    found = list(plan.problems())
    assert [model for _, model, _ in found[:4]] == ["a", "b@bf16", "c", "d"]
    assert {cluster for _, _, cluster in found[:2]} == {"2onnx", "2torch"}
    assert {(model, cluster) for _, model, cluster in found} == {(m, c) for m in plan.models for c in plan.clusters}
    assert found[1][0] == "b-bf16-2torch"


def test_a_problem_is_begun_only_if_all_can_be_visited_again() -> None:
    clock = Clock()
    pace = RunPace(100.0, clock)
    assert pace.left_s(9, 9) is None
    assert pace.affords_problem(0), "nothing is known yet"
    pace.planned(10.0)
    pace.visited("one", 20.0)
    clock.now = 30.0
    # 10 s to make it, 20 s to visit it, 40 s to visit both again
    assert not pace.affords_problem(2)
    assert pace.affords_problem(1)
    assert pace.left_s(1, 1) == 30.0
    assert pace.left_s(9, 9) == 70.0, "a run never lasts longer than its budget"


def test_a_visit_is_begun_only_if_there_is_time_for_one_as_long_as_before() -> None:
    clock = Clock()
    pace = RunPace(100.0, clock)
    pace.visited("long", 60.0)
    pace.visited("short", 10.0)
    clock.now = 50.0
    assert pace.affords_visit("short")
    assert not pace.affords_visit("long")
    assert pace.affords_visit("unknown"), "the mean is 35 s"


def test_without_a_budget_there_is_always_time() -> None:
    pace = RunPace(math.inf)
    pace.visited("one", 1e9)
    assert pace.affords_problem(1000)
    assert pace.affords_visit("one")
