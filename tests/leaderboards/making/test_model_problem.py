"""From an ONNX file, a cluster YAML and a trained bundle to a problem and an answer."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from tests.predictors import law

from opmark.cli.main import cli
from opmark.core.errors import ContentError
from opmark.core.workspace import ROOMS, Workspace
from opmark.leaderboards.making.model_problem import load_cluster, problem_of_model
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.models.resolve import graph_of
from opmark.predictors.model.bundle import load, save
from opmark.predictors.model.bundle_paths import bundle_path
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import train_on

TARGET = "onnxruntime-cpu-t1"
CLUSTER = f"""
schema: 1
name: two-cores
devices:
  - {{name: a, type: core, target: {TARGET}, memory_bytes: 1000000000}}
  - {{name: b, type: core, target: acme-1/1.0.0/{TARGET}, memory_bytes: 1000000000}}
links:
  - {{source: a, destination: b, latency_ns: 2000, bandwidth_bytes_per_s: 8.0e+9}}
  - {{source: b, destination: a, latency_ns: 2000, bandwidth_bytes_per_s: 8.0e+9}}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("workspace")
    for room in ROOMS:
        (root / room).mkdir()
    made = Workspace(root)
    save(train_on(law.rows(30), law.TARGET, hardware=law.HARDWARE), bundle_path(made, "acme-1", "1.0.0", TARGET))
    (root / "cluster.yaml").write_text(CLUSTER.replace(f"acme-1/1.0.0/{TARGET}", TARGET))
    onnx.save(two_towers(), root / "towers.onnx")
    return made


def two_towers() -> onnx.ModelProto:
    """Two matrix products side by side, added and normalised."""
    size = 256
    weights = [numpy_helper.from_array(matrix(size, seed), name=f"w{seed}") for seed in range(4)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a0"]),
        helper.make_node("MatMul", ["a0", "w1"], ["a1"]),
        helper.make_node("MatMul", ["x", "w2"], ["b0"]),
        helper.make_node("MatMul", ["b0", "w3"], ["b1"]),
        helper.make_node("Add", ["a1", "b1"], ["sum"]),
        helper.make_node("Softmax", ["sum"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [128, size]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "towers", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def matrix(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)


def test_a_problem_costs_what_its_predictors_say(workspace: Workspace) -> None:
    cluster = load_cluster(workspace.root / "cluster.yaml")
    model = str(workspace.root / "towers.onnx")
    problem = problem_of_model(model, cluster, workspace, missing="bytes-moved")
    assert problem.name == "towers-two-cores"
    assert len(problem.units) == 5, "ONNX Runtime makes one kernel of a product and the sum"
    assert sum(problem.weights.values()) == 4 * 256 * 256 * 4
    bundle = load(bundle_path(workspace, "acme-1", "1.0.0", TARGET))
    whole = CostModel(bundle, missing="bytes-moved").network(graph_of(model, TARGET, cache=workspace.cache)).total_ns
    alone = evaluate(problem, Solution(device={unit.name: "a" for unit in problem.units}))
    assert alone.cost == pytest.approx(whole, rel=0.01)
    assert bundle.manifest.content_id in problem.provenance.bundles[TARGET]


def test_a_kind_without_predictor_and_another_bundle_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    cluster = load_cluster(workspace.root / "cluster.yaml")
    model = str(workspace.root / "towers.onnx")
    with pytest.raises(ContentError, match="no predictor for kind"):
        problem_of_model(model, cluster, workspace)
    (tmp_path / "cluster.yaml").write_text((workspace.root / "cluster.yaml").read_text().replace("cpu-t1", "cpu-t9"))
    with pytest.raises(ContentError, match="onnxruntime-cpu-t9"):
        problem_of_model(model, load_cluster(tmp_path / "cluster.yaml"), workspace, missing="bytes-moved")
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    with pytest.raises(ContentError, match="type 'core' already stands for target"):
        problem_of_model(model, load_cluster(tmp_path / "cluster.yaml"), workspace, missing="bytes-moved")
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace(f"target: {TARGET}, ", ""))
    with pytest.raises(ContentError, match=r"here\.yaml: devices\.a\.target: missing"):
        problem_of_model(model, load_cluster(tmp_path / "cluster.yaml"), workspace, where="here.yaml")


def test_slots_of_one_device_slow_each_other_where_that_was_measured(workspace: Workspace, tmp_path: Path) -> None:
    from opmark.predictors.corun.files import corun_path, save_corun
    from opmark.predictors.corun.slowdown import CorunModel

    text = (
        (workspace.root / "cluster.yaml").read_text().replace("name: a, type: core,", "name: a, type: core, slots: 2,")
    )
    (tmp_path / "cluster.yaml").write_text(text)
    cluster, model = load_cluster(tmp_path / "cluster.yaml"), str(workspace.root / "towers.onnx")
    free = problem_of_model(model, cluster, workspace, missing="bytes-moved")
    assert free.interference == {}
    learned = CorunModel(
        device="acme-1", target=TARGET, level2_bytes=1 << 20, sensitivity=(-1.0, 0.0, 0.0, 0.0),
        pressure=(0.0, 0.0, 0.0, 0.0), stressors={}, trials=100,
    )  # fmt: skip
    path = corun_path(workspace, "acme-1", TARGET)
    save_corun(learned, path)
    try:
        slowed = problem_of_model(model, cluster, workspace, missing="bytes-moved")
        one_slot = problem_of_model(
            model, load_cluster(workspace.root / "cluster.yaml"), workspace, missing="bytes-moved"
        )
    finally:
        path.unlink()
    assert "slowdown" in slowed.features
    assert one_slot.interference == {}
    factors = [factor for row in slowed.interference["core"].values() for factor in row.values()]
    assert factors == pytest.approx([np.exp(np.exp(-1.0))] * len(factors), abs=1e-6)
    together = Solution(device={unit.name: "a" for unit in slowed.units})
    assert evaluate(slowed, together).cost > evaluate(free, together).cost, "the towers run side by side"


def test_from_a_model_to_a_placement_on_the_command_line(workspace: Workspace, tmp_path: Path) -> None:
    output = tmp_path / "problem.json"
    root = workspace.root
    model, files = str(root / "towers.onnx"), ["--cluster", str(root / "cluster.yaml"), "-o", str(output)]
    command = ["--workspace", str(root), "leaderboards", "make-problem", model, *files]
    made = CliRunner().invoke(cli, [*command, "--missing", "bytes-moved", "--json"])
    assert made.exit_code == 0, made.stderr
    assert json.loads(made.stdout)["units"] == 5
    costs = {}
    for placer in ("best-single-device", "local-search"):
        found = CliRunner().invoke(
            cli, ["leaderboards", "place", str(output), "--placer", placer, "--budget", "5s", "--json"]
        )
        answer = json.loads(found.stdout)
        costs[placer] = answer["cost"]
        assert answer["bound"] <= answer["cost"]
    assert costs["local-search"] < costs["best-single-device"], "the towers run side by side"
