"""`opmark leaderboards bound`: lower bounds, and the response-time guarantee that an instance stores."""

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner, Result
from tests.leaderboards.examples import heft_canonical

from opmark.cli.main import cli
from opmark.leaderboards.bounds.response_time import guarantee_ns, known_guarantee_ns
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.problem import Problem


def bound(problem: Problem, folder: Path, *options: str) -> Result:
    save_problem(problem, folder / "problem.json")
    return CliRunner().invoke(cli, ["leaderboards", "bound", str(folder / "problem.json"), *options])


def test_the_stored_guarantee_is_printed_else_the_one_that_follows(tmp_path: Path) -> None:
    problem = heft_canonical()
    worked_out = guarantee_ns(problem)
    assert worked_out is not None
    assert json.loads(bound(problem, tmp_path, "--json").stdout)["guarantee"] == worked_out
    reference = ReferenceCosts(bound_ns=41, best_known_ns=73, source="test", bounds={"area": 41}, guarantee_ns=200)
    stored = replace(problem, reference=reference)
    assert known_guarantee_ns(stored) == 200
    assert json.loads(bound(stored, tmp_path, "--json").stdout)["guarantee"] == 200
    assert "never takes longer than 200 ns" in bound(stored, tmp_path).stdout


def test_nothing_is_promised_of_a_throughput(tmp_path: Path) -> None:
    problem = replace(heft_canonical(), objective="throughput", profile="maxload_serial")
    assert json.loads(bound(problem, tmp_path, "--json").stdout)["guarantee"] is None
    assert "never takes longer" not in bound(problem, tmp_path).stdout
