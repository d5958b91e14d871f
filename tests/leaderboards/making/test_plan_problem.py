"""Candidates that name a plan: imported layers on the plan's devices, under the track's objective or their own."""

from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources, problem_of
from opmark.leaderboards.making.recipe import Candidate, Recipe

ROOT = Path(__file__).resolve().parents[3]
PLAN = "sailor/plans/mit/N2_N2_D2.json"


def made(candidate: Candidate, objective: str = "latency"):
    return problem_of(candidate, Recipe(candidates=(candidate,)), Sources(workspace=Workspace(ROOT)), objective)


def test_a_plan_gives_a_step_in_micro_batches_with_replicas() -> None:
    found = made(Candidate(plan=PLAN, name="two-nodes"))
    assert (found.name, found.objective, found.memory_mode) == ("two-nodes", "latency", "stash")
    assert found.costs_from == "imported"
    assert {"replicas", "micro-batches"} <= set(found.features)
    assert "splits" not in found.features, "shares of a micro-batch belong to replicas"
    assert found.provenance.family == "opt-350"
    assert {device.target for device in found.cluster.devices} == found.provenance.bundles.keys()
    assert all(words.startswith("imported: ") for words in found.provenance.bundles.values())


def test_the_objective_is_the_tracks_or_the_candidates_own() -> None:
    flow = made(Candidate(plan=PLAN), "throughput")
    assert (flow.name, flow.objective) == ("N2_N2_D2", "throughput")
    assert "micro-batches" not in flow.features, "a full pipeline has no step that ends"
    priced = made(Candidate(plan=PLAN, objective="cost"), "throughput")
    assert (priced.name, priced.objective, priced.unit) == ("N2_N2_D2-cost", "cost", "$")
    assert "prices" in priced.features


def test_a_plan_has_models_and_devices_of_its_own() -> None:
    assert Recipe(candidates=(Candidate(plan=PLAN, name="fine"),)).problems() == []
    wrong = Recipe(candidates=(Candidate(plan=PLAN, cluster="pair", name="both"), Candidate(name="neither")))
    assert [line.partition(":")[0] for line in wrong.problems()] == ["candidates.both.plan", "candidates.neither"]
    with pytest.raises(ContentError):
        made(Candidate(plan="sailor/plans/mit/missing.json"))
