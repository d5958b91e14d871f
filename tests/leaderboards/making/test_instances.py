"""Problems of candidates: networks that train beside networks that answer, on devices that cannot do both."""

from pathlib import Path

import pytest
from tests.leaderboards.making.test_cluster_plan import LINKS
from tests.leaderboards.making.test_device_table import ANALYTIC, EFFICIENCY

from opmark.core.errors import OpMarkError
from opmark.core.workspace import ROOMS, Workspace
from opmark.leaderboards.making.instances import Sources, problem_of
from opmark.leaderboards.making.recipe import Candidate, Recipe
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.single import best_single_device

MIXED = """
schema: 1
title: "A core that cannot train, and two that can"
devices: {onnx: answers, torch0: trains, torch1: trains}
links:
  - {between: [onnx, torch0], type: fast}
  - {between: [onnx, torch1], type: fast}
  - {between: [torch0, torch1], type: fast}
"""
MODELS = ("gpt2-tiny@training", "squeeze-small")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    for name, text in {
        "devices/trains.yaml": ANALYTIC.replace("torch-cuda-t1", "torch-eager-t1").replace("1000", "10000000000", 1),
        "devices/answers.yaml": ANALYTIC.replace("torch-cuda-t1", "onnxruntime-cpu-t1").replace("1000", "1000000", 1),
        "devices/efficiency/made-up.yaml": EFFICIENCY,
        "clusters/mixed.yaml": MIXED,
        "clusters/links.yaml": LINKS,
    }.items():
        path = tmp_path / "leaderboards" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Workspace(tmp_path)


def made(workspace: Workspace, *models: str) -> Problem:
    candidate = Candidate(models=models, cluster="mixed", units_at_most=60)
    return problem_of(candidate, Recipe(candidates=(candidate,)), Sources(workspace=workspace), "latency")


def test_a_network_trains_where_it_can_and_another_answers_anywhere(workspace: Workspace) -> None:
    problem = made(workspace, *MODELS)
    assert [device.name for device in problem.cluster.devices] == ["onnx", "torch0", "torch1"]
    assert problem.host == "onnx"
    assert {device.target for device in problem.cluster.devices} == problem.provenance.bundles.keys()
    able = {
        name: {tuple(sorted(unit.exec_ns)) for unit in problem.units if unit.name.startswith(name)} for name in "01"
    }
    assert able == {"0": {("trains",)}, "1": {("answers", "trains")}}
    assert {unit.phase for unit in problem.units if unit.name.startswith("0")} == {"forward", "backward", "update"}
    row, _ = best_single_device(problem)
    assert set(row.tolist()) <= {1, 2}, "only torch can run all of it"


def test_a_network_that_no_device_can_train_says_so(workspace: Workspace) -> None:
    path = workspace.leaderboards / "clusters" / "mixed.yaml"
    path.write_text(MIXED.replace("torch0: trains, torch1: trains", "torch0: answers, torch1: answers"))
    with pytest.raises(OpMarkError, match="training"):
        made(workspace, MODELS[0])
