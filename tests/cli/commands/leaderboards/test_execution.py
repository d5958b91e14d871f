"""`opmark leaderboards execute`: figures, files and exit codes."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.studies.execution.tiny import branchy, made_problem

from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution, save_solution
from opmark.leaderboards.problem.problem import Problem

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
pytestmark = pytest.mark.skipif(CORES < 2, reason="needs two processor cores")


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    folder = tmp_path_factory.mktemp("tiny")
    return made_problem(str(branchy(folder / "branchy.onnx")), folder)


def execute(folder: Path, problem: Problem, *options: object) -> Result:
    """The first half of the units on one core, the rest on the other."""
    names = [unit.name for unit in problem.units]
    devices = [device.name for device in problem.cluster.devices]
    device = {name: devices[2 * number // len(names)] for number, name in enumerate(names)}
    save_problem(problem, folder / "problem.json")
    save_solution(Solution(device=device, placer="halves"), folder / "solution.json")
    files = (folder / "problem.json", folder / "solution.json")
    return CliRunner().invoke(cli, ["leaderboards", "execute", *map(str, (*files, *options))])


def test_json_trace_and_page(tmp_path: Path, problem: Problem) -> None:
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    result = execute(tmp_path, problem, "--repeat", 3, "--trace", trace, "--page", page, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["outputs_equal"] is True
    assert found["repeats"] == 3
    parts = ("kernels_ns", "transfers_ns", "waiting_ns", "slowdown_ns")
    assert sum(found[part] for part in parts) == found["measured_ns"] - found["predicted_ns"]
    assert any(event.get("pid") == 3 for event in json.loads(trace.read_text())["traceEvents"])
    assert "The execution" in page.read_text()
    assert "slowdown by the neighbour" in execute(tmp_path, problem, "--repeat", 2).stdout


def test_a_device_that_this_machine_lacks(tmp_path: Path, problem: Problem) -> None:
    first, second = problem.cluster.devices
    third = replace(second, name="core99", target="onnxruntime-cpu-t4096")
    cluster = replace(problem.cluster, devices=(first, replace(third, type=first.type)), links=())
    result = execute(tmp_path, replace(problem, cluster=cluster))
    assert result.exit_code in {ExitCode.UNAVAILABLE, ExitCode.CONTENT}
    assert "Error: " in result.stderr


def test_another_objective_is_refused(tmp_path: Path, problem: Problem) -> None:
    result = execute(tmp_path, replace(problem, objective="throughput"))
    assert result.exit_code == ExitCode.CONTENT
    assert "only the latency of one pass can be executed" in result.stderr
