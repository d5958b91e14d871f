"""The Python interface: light to import, typed, and as its guide and its notebook say."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import opmark
from opmark.core.errors import ContentError, PlacementError, UsageError
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "guide" / "python.md"
NOTEBOOK = ROOT / "docs" / "first-predictions.ipynb"
PROBLEM = "inference-latency/inception-epyc-both"


def test_import_is_light_and_names_are_found_late() -> None:
    program = (
        "import sys, opmark; opmark.__version__; dir(opmark);"
        "sys.exit(len({'torch', 'numpy', 'pandas', 'pydantic', 'opmark.interface'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert all(getattr(opmark, name) is not None for name in opmark.__all__)
    assert {*opmark.__all__, "__version__"} <= set(dir(opmark))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        opmark.nothing  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "src" / "opmark" / "__init__.pyi").read_text())
    stated = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert stated == set(opmark.__all__)
    assert (ROOT / "src" / "opmark" / "py.typed").is_file()


def test_a_module_is_predicted_and_keeps_its_mode() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout(0.5), torch.nn.ReLU())
    module[0].eval()
    for target in ("", "onnxruntime-cpu-t1"):
        found = opmark.predict(module, torch.zeros(4, 64), target=target)
        assert found.target.endswith(target or "torch-eager-t1")
        assert found.interval_ns[0] < found.latency_ns < found.interval_ns[1]
        assert [one.training for one in module] == [False, True, True]
        assert "gemm" in {one.kind for one in found.kernels}
        assert str(found).startswith("Sequential on ")
    table = found.to_pandas()
    assert list(table["latency_ns"]) == [one.latency_ns for one in found.kernels]
    assert (table["low_ns"] < table["high_ns"]).all()


def test_sizes_count_and_wrong_arguments_are_refused(tmp_path: Path) -> None:
    one, eight = (opmark.predict("squeeze-small", dimensions={"batch": batch}) for batch in (1, 8))
    assert eight.latency_ns > 2 * one.latency_ns
    linear = torch.nn.Linear(8, 8)
    wrong: list[dict[str, Any]] = [
        {"model": linear},
        {"model": linear, "inputs": torch.zeros(1, 8), "dimensions": {"batch": 2}},
        {"model": linear, "inputs": [1.0]},
        {"model": "squeeze-small", "inputs": torch.zeros(1)},
        {"model": 3, "inputs": torch.zeros(1)},
        {"model": "squeeze-small", "missing": "guess"},
    ]
    for arguments in wrong:
        with pytest.raises(UsageError):
            opmark.predict(**arguments)
    with pytest.raises(ContentError, match="no such predictor bundle"):
        opmark.predict("squeeze-small", bundle=tmp_path / "none")


def test_a_release_is_found_in_a_workspace() -> None:
    found = opmark.load_release("amd-26-2-1-2vcpu-l3-32m", workspace=ROOT)
    assert found.device == "amd-26-2-1-2vcpu-l3-32m"
    assert len(found.networks) > 100


class Alone(Placer):
    """Everything on the first device."""

    summary = "one device"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        del budget_s, seed
        first = problem.cluster.devices[0].name
        return Solution(device={unit.name: first for unit in problem.units})


def test_a_placer_of_ones_own_is_simulated() -> None:
    problem = opmark.load_problem(PROBLEM)
    found = opmark.place(problem, Alone(), budget_s=1)
    assert found.placer == "Alone"
    assert found.cost == opmark.simulate(PROBLEM, found.solution).cost >= found.bound
    busy = {one.name: one.busy_ns for one in found.simulated.devices}
    assert [name for name, ns in busy.items() if ns] == [problem.cluster.devices[0].name]
    assert list(found.simulated.to_pandas()["name"]) == list(busy)
    with pytest.raises(PlacementError):
        opmark.simulate(problem, Solution(device={}))


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert "Sequential on " in capsys.readouterr().out


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["metadata"]["language_info"]["name"]) == (4, "python")
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in cells:
        exec(compile(cell, str(NOTEBOOK), "exec"), names)
    assert names["batches"]["samples_per_s"].gt(0).all()
    assert "no solution is below" in capsys.readouterr().out
