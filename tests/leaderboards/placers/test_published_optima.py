"""Reference optima of published placement problems: what the authors' own programs, or a proof, say is best."""

import os
from pathlib import Path

import pytest

from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.problem.placement import Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import in_unit
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.simulate import simulate

ROOT = Path(__file__).resolve().parents[3]
EXTERNAL = Path(os.environ.get("OPMARK_EXTERNAL_DATA", ROOT.parent / "shared" / "data"))
pytestmark = pytest.mark.skipif(
    not (EXTERNAL / "dnn-partitioning").is_dir() or not (EXTERNAL / "pipedream").is_dir(),
    reason="OPMARK_EXTERNAL_DATA has no dnn-partitioning and pipedream",
)
DP, LINEAR = "dnn-partitioning-dp", "dnn-partitioning-dp-linear"


def partitioning(name: str, **options: object) -> Problem:
    path = EXTERNAL / "dnn-partitioning" / f"throughput_{name}_inference.json"
    return IMPORTERS.load("dnn-partitioning").read(path, ImportOptions(**options))


def profile(name: str, **options: object) -> Problem:
    return IMPORTERS.load("pipedream").read(EXTERNAL / "pipedream" / f"{name}.txt", ImportOptions(**options))


@pytest.mark.parametrize(
    ("name", "placer", "optimum"),
    [
        ("layer_bert24", DP, 17.7899),
        ("layer_bert24", LINEAR, 17.7899),
        ("layer_resnet50", DP, 33.7747),
        ("layer_resnet50", LINEAR, 33.7747),
        ("operator_bert3", DP, 27.9186),
        ("operator_bert3", LINEAR, 27.9186),
        ("layer_inceptionv3", LINEAR, 51.552),  # the optimum of all contiguous splits is on this order
    ],
)
def test_max_load_optima(name: str, placer: str, optimum: float) -> None:
    problem = partitioning(name)
    found = attempt(problem, placer, budget_s=60).evaluation
    assert found.value(problem.unit) == pytest.approx(optimum, abs=2e-4 if optimum > 51 else 1e-4)
    assert all(found.cost >= value for value in bounds(problem).values())


def test_the_experts_split_of_bert24() -> None:
    from opmark.core.reading import read_json

    problem = partitioning("layer_bert24")
    expert = read_json(EXTERNAL / "dnn-partitioning" / "expert_bert24_inference.json")
    device = {str(n): f"acc{index}" for index, share in enumerate(expert["fpgas"]) for n in share["nodes"]}
    assert evaluate(problem, Solution(device=device)).value("ms") == pytest.approx(20.084, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "alone", "ratio", "area"),
    [
        ("layer_bert24", 92.406, 10, 15.149),
        ("layer_resnet50", 201.450, 10, 33.025),
        ("operator_bert3", 49.3526, 23, 16.216),
    ],
)
def test_everything_on_one_device_and_the_area_bound(name: str, alone: float, ratio: int, area: float) -> None:
    problem = partitioning(name)
    units = [unit.name for unit in problem.units]
    placement = placement_of(problem, Solution(device=dict.fromkeys(units, "acc0")))
    one = in_unit(simulate(problem, placement).value, "ms")  # the published figure ignores memory
    assert one == pytest.approx(alone, rel=1e-5)
    host = evaluate(problem, Solution(device=dict.fromkeys(units, "cpu0"))).value("ms")
    assert host == pytest.approx(ratio * alone, rel=1e-4)
    assert bounds(problem)["area"] / 1e6 == pytest.approx(area, abs=1e-3)


def test_pipedreams_published_splits() -> None:
    vgg = profile("vgg16")
    found = attempt(vgg, "pipedream", budget_s=60)
    assert found.evaluation.value("s") == pytest.approx(0.175732624, abs=1e-9)
    first = [unit for unit in found.solution.device if found.solution.device[unit] == found.solution.device["node2"]]
    assert len(first) == 15
    assert sorted(len(row) for row in (found.solution.replicas or {}).values()) == [2]
    resnet = profile("resnet50")
    assert attempt(resnet, "pipedream", budget_s=60).evaluation.value("s") == pytest.approx(0.111497, abs=1e-9)
    for problem in (vgg, resnet):
        assert all(attempt(problem, "pipedream", budget_s=60).evaluation.cost >= v for v in bounds(problem).values())


def test_pipedream_without_replicas() -> None:
    from dataclasses import replace

    straight = replace(profile("vgg16"), replication=False)
    assert attempt(straight, "pipedream", budget_s=60).evaluation.value("s") == pytest.approx(0.216450, abs=1e-9)
