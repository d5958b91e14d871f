"""`opmark leaderboards check-trace` and `bound`: stored traces, lower bounds and the response-time guarantee."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.leaderboards.examples import heft_canonical, peft_canonical

from opmark.cli.main import cli
from opmark.core.errors import ExitCode, PlacementError
from opmark.core.workspace import ROOMS
from opmark.leaderboards.bounds.response_time import guarantee_ns, known_guarantee_ns
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.trace_check import check_trace_file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["leaderboards", *(str(argument) for argument in arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    problem, solution, trace = (tmp_path / f"{name}.json" for name in ("problem", "solution", "trace"))
    save_problem(heft_canonical(), problem)
    assert run("place", problem, "--placer", "heft", "--budget", "2s", "-o", solution).exit_code == 0
    assert run("simulate", problem, solution, "--trace", trace).exit_code == 0
    return problem, solution, trace


def test_a_trace_is_valid_and_the_same_bit_for_bit(files: tuple[Path, Path, Path]) -> None:
    problem, solution, trace = files
    alone = json.loads(run("check-trace", problem, trace, "--json").stdout)
    assert alone == {
        "valid": True,
        "profile": "opsim1",
        "unit": "ns",
        "cost": 93,
        "kernels": 10,
        "transfers": alone["transfers"],
        "same": None,
    }
    assert alone["transfers"] > 0
    assert json.loads(run("check-trace", problem, trace, "--solution", solution, "--json").stdout)["same"] is True
    assert "the same trace, bit for bit" in run("check-trace", problem, trace, "--solution", solution).stdout


def test_a_cost_that_is_not_the_events_is_refused(files: tuple[Path, Path, Path]) -> None:
    problem, _, trace = files
    content = json.loads(trace.read_text())
    content["otherData"]["cost_ns"] = 92
    trace.write_text(json.dumps(content))
    wrong = run("check-trace", problem, trace)
    assert wrong.exit_code == ExitCode.CONTENT
    assert "its events cost 93 ns, and it says 92 ns" in wrong.stderr


def test_a_picture_that_lies_is_not_the_same(files: tuple[Path, Path, Path]) -> None:
    problem, solution, trace = files
    content = json.loads(trace.read_text())
    bar = next(event for event in content["traceEvents"] if event["ph"] == "X")
    bar["dur"] *= 2
    trace.write_text(json.dumps(content))
    wrong = run("check-trace", problem, trace, "--solution", solution)
    assert wrong.exit_code == ExitCode.CONTENT
    assert repr(bar["name"]) in wrong.stderr


@pytest.mark.parametrize("content", ["[]", "{}", '{"traceEvents": [{"ph": "X"}]}'])
def test_what_is_no_trace_is_refused_by_name(files: tuple[Path, Path, Path], content: str) -> None:
    problem, _, trace = files
    trace.write_text(content)
    wrong = run("check-trace", problem, trace)
    assert wrong.exit_code == ExitCode.CONTENT
    assert str(trace) in wrong.stderr


def test_a_trace_of_another_problem_is_refused(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    save_problem(peft_canonical(), tmp_path / "other.json")
    wrong = run("check-trace", tmp_path / "other.json", files[2])
    assert wrong.exit_code == ExitCode.CONTENT
    assert "the trace is of problem" in wrong.stderr


def test_another_solution_gives_another_trace(files: tuple[Path, Path, Path]) -> None:
    problem = load_problem(files[0])
    with pytest.raises(PlacementError, match="simulating the solution gives another trace"):
        check_trace_file(problem, files[2], Solution(device={unit.name: "P1" for unit in problem.units}))


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


def test_a_problem_of_a_track_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    monkeypatch.chdir(tmp_path)
    for track, split in (("one", "problems"), ("two", "validation")):
        (tmp_path / "leaderboards" / track / split).mkdir(parents=True)
        save_problem(heft_canonical(), tmp_path / "leaderboards" / track / split / f"p-{track}.json.gz")
    assert "canonical" in run("bound", "p-one").stdout
    assert run("bound", "p-two").exit_code == 0
    unknown = run("bound", "p-three")
    assert (unknown.exit_code, "p-three: no such file" in unknown.stderr) == (ExitCode.CONTENT, True)
    save_problem(heft_canonical(), tmp_path / "leaderboards" / "one" / "problems" / "p-two.json.gz")
    twice = run("bound", "p-two")
    assert (twice.exit_code, "'p-two' is the name of 2 problems: write one/p-two or two/p-two" in twice.stderr) == (
        2,
        True,
    )
    assert run("bound", "two/p-two").exit_code == 0
    # A file of that name goes first.
    save_problem(replace(heft_canonical(), name="mine"), tmp_path / "p-two")
    assert "mine" in run("bound", "p-two").stdout


def test_an_unknown_profile_of_a_trace_is_named_with_its_file(files: tuple[Path, Path, Path]) -> None:
    problem, _, trace = files
    content = json.loads(trace.read_text())
    content["otherData"]["profile"] = "opsim9"
    trace.write_text(json.dumps(content))
    wrong = run("check-trace", problem, trace)
    assert wrong.exit_code == ExitCode.CONTENT
    assert "trace.json: otherData.profile: no profile is called 'opsim9'" in wrong.stderr


def test_a_stored_bound_that_a_solution_beats_is_doubted(tmp_path: Path) -> None:
    for bound_ns, doubted in ((41, False), (10_000, True)):
        reference = ReferenceCosts(bound_ns=bound_ns, best_known_ns=10_000, source="test")
        save_problem(replace(heft_canonical(), reference=reference), tmp_path / "p.json")
        found = run("place", tmp_path / "p.json", "--placer", "heft", "--json")
        assert json.loads(found.stdout)["bound"] == bound_ns
        assert ("is wrong: this solution costs less" in found.stderr) == doubted
