"""`opmark leaderboards`: documented JSON, exit codes, one sentence per mistake."""

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.leaderboards.examples import graph, heft_canonical, pair

from opmark.cli.commands.leaderboards.problems import OBJECTIVES, workload_options
from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.leaderboards.problem.fields import Arrivals, ReferenceCosts
from opmark.leaderboards.problem.files import problem_text, save_problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES as KNOWN


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    save_problem(heft_canonical(), tmp_path / "problem.json")
    return tmp_path / "problem.json"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for room in ("bench", "datasets", "predictors", "leaderboards/small/problems"):
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / "leaderboards/small/track.yaml").write_text("schema: 1\ntitle: Small\nversion: 1.0.0\nbudget_s: 5\n")
    save_problem(heft_canonical(), tmp_path / "leaderboards/small/problems/canonical.json")
    return tmp_path


def test_place_simulate_bound(problem: Path, tmp_path: Path) -> None:
    solution, trace = tmp_path / "solution.json", tmp_path / "trace.json"
    placed = json.loads(
        run("leaderboards", "place", problem, "--placer", "heft", "--budget", "2s", "-o", solution, "--json").stdout
    )
    assert placed.items() >= {"valid": True, "objective": "latency", "unit": "ns", "cost": 93, "bound": 41}.items()
    written = json.loads(solution.read_text())
    assert written.pop("checksum")
    assert placed["solution"] == written
    found = json.loads(run("leaderboards", "simulate", problem, solution, "--trace", trace, "--json").stdout)
    assert found["cost"] == 93
    assert json.loads(trace.read_text())["otherData"]["cost_ns"] == 93
    free = json.loads(
        run("leaderboards", "simulate", problem, solution, "--profile", "contention_free", "--json").stdout
    )
    assert free["cost"] <= 93
    assert json.loads(run("leaderboards", "bound", problem, "--json").stdout)["bound"] == 41
    for command in (["bound", problem], ["simulate", problem, solution], ["place", problem, "--placer", "heft"]):
        assert run("leaderboards", *command).exit_code == 0


def test_import_place_and_simulate_in_the_sources_unit(tmp_path: Path) -> None:
    problem, solution, trace = (tmp_path / name for name in ("problem.json", "solution.json", "trace.json"))
    node = {"cpuLatency": 5.0, "fpgaLatency": 0.5, "size": 1.0, "supportedOnFpga": True, "isBackwardNode": False}
    nodes = [{"id": number, "colorClass": number, **node} for number in range(4)]
    edges = [{"sourceId": number, "destId": number + 1, "cost": 0.125} for number in range(3)]
    source = tmp_path / "chain.json"
    content = {"maxSizePerFPGA": 9.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}
    source.write_text(json.dumps(content))
    made = run("leaderboards", "import", source, "--format", "dnn-partitioning", "-o", problem, "--json")
    assert json.loads(made.stdout).items() >= {"unit": "ms", "units": 4, "objective": "throughput"}.items()
    assert json.loads(problem.read_text()).items() >= {"contiguous": True, "profile": "maxload_serial"}.items()
    bound = json.loads(run("leaderboards", "bound", problem, "--solver", "5s", "--json").stdout)
    assert bound["bounds"]["area"] == pytest.approx(4 / 4.2, rel=1e-3)
    assert bound["bounds"]["solver"] == pytest.approx(1.125, rel=1e-3)
    start = ("leaderboards", "place", problem, "--placer", "dnn-partitioning-dp", "--budget", "5s")
    placed = json.loads(run(*start, "-o", solution, "--json").stdout)
    assert placed["cost"] == pytest.approx(1.125)
    assert placed["bound"] == pytest.approx(bound["bounds"]["area"])
    start = ("leaderboards", "simulate", problem, solution)
    shown = json.loads(run(*start, "--draws", 3, "--trace", trace, "--json").stdout)
    assert (shown["cost"], shown["median"], shown["p95"]) == pytest.approx((1.125, 1.125, 1.125))
    assert "draws of the predictors' errors" in run(*start, "--draws", 3).stdout
    again = run(
        "leaderboards", "import", source, "--format", "dnn-partitioning", "--objective", "latency", "-o", problem
    )
    assert again.exit_code == 0
    assert "5 devices" not in again.stdout
    assert json.loads(problem.read_text())["profile"] == "atomic_calls"
    loose = ("--no-contiguous", "--devices", 1, "-o", problem)
    assert run("leaderboards", "import", source, "--format", "dnn-partitioning", *loose).exit_code == 0
    assert json.loads(problem.read_text())["contiguous"] is False
    wrong = run("leaderboards", "import", source, "--format", "pipedream", "-o", problem)
    assert wrong.exit_code == ExitCode.CONTENT
    assert "chain.json:1: neither a node nor an edge" in wrong.stderr
    assert run("leaderboards", "import", source, "--format", "onnx", "-o", problem).exit_code == ExitCode.USAGE


def test_tracks_score_standings_site(workspace: Path) -> None:
    start = ("--workspace", workspace, "leaderboards")
    assert json.loads(run(*start, "tracks", "--json").stdout)[0]["problems"] == 1
    row = json.loads(run(*start, "problems", "--json").stdout)[0]
    assert row.items() >= {"units": 10, "provenance": "measured", "features": ["unequal"]}.items()
    assert (row["bound_ns"], row["best_known_ns"]) == (None, None)
    known = ReferenceCosts(bound_ns=41, best_known_ns=73)
    path = workspace / "leaderboards/small/problems/canonical.json"
    save_problem(replace(heft_canonical(), reference=known), path)
    row = json.loads(run(*start, "problems", "--json").stdout)[0]
    assert (row["bound_ns"], row["best_known_ns"]) == (41, 73)
    save_problem(heft_canonical(), path)
    assert run(*start, "standings", "--track", "small").exit_code == ExitCode.NOTHING_SELECTED
    scored = json.loads(
        run(*start, "score", "--track", "small", "--placer", "heft", "--placer", "random", "--json").stdout
    )
    assert [(row["rank"], row["name"]) for row in scored] == [(1, "heft"), (2, "random")]
    assert json.loads(run(*start, "standings", "--track", "small", "--json").stdout) == scored
    assert json.loads(run(*start, "freeze", "--track", "small", "--json").stdout)["canonical"]["best_known_ns"] == 93
    assert run(*start, "freeze", "--track", "small").exit_code == 0
    assert run(*start, "site").exit_code == 0
    assert (workspace / "site" / "index.html").is_file()
    for command, shown in (
        (["tracks"], "Small"),
        (["problems", "--track", "small"], "canonical"),
        (["standings", "--track", "small"], "heft"),
    ):
        assert shown in run(*start, *command).stdout


def test_mistakes_have_their_exit_code_and_sentence(problem: Path, tmp_path: Path) -> None:
    unknown = run("leaderboards", "place", problem, "--placer", "hefty")
    assert (unknown.exit_code, "did you mean 'heft'?" in unknown.stderr) == (ExitCode.USAGE, True)
    assert run("leaderboards", "place", problem, "--placer", "heft", "--budget", "-3").exit_code == ExitCode.USAGE
    absent = run("leaderboards", "bound", tmp_path / "no.json")
    assert (absent.exit_code, "no such file" in absent.stderr) == (ExitCode.CONTENT, True)
    save_problem(graph({"a": 1, "b": 1}, [("a", ["b"]), ("b", ["a"])], pair()), tmp_path / "cycle.json")
    cyclic = run("leaderboards", "bound", tmp_path / "cycle.json")
    assert (cyclic.exit_code, "a → b → a" in cyclic.stderr or "b → a → b" in cyclic.stderr) == (ExitCode.CONTENT, True)
    (tmp_path / "bad.json").write_text('{"schema": 1, "device": {"T1": NaN}}')
    invalid = run("leaderboards", "simulate", problem, tmp_path / "bad.json")
    assert invalid.exit_code == ExitCode.CONTENT
    assert "bad.json: NaN is not a number of JSON" in invalid.stderr
    devices = dict.fromkeys((unit.name for unit in heft_canonical().units), "P1")
    (tmp_path / "other.json").write_text(json.dumps({"schema": 1, "problem": "another", "device": devices}))
    foreign = run("leaderboards", "simulate", problem, tmp_path / "other.json")
    assert foreign.exit_code == ExitCode.CONTENT
    assert "other.json: it is a solution of 'another', not of 'canonical'" in foreign.stderr


def test_numbers_that_are_none_or_too_large_are_refused_in_one_sentence(tmp_path: Path) -> None:
    text = problem_text(heft_canonical())
    path = tmp_path / "wrong.json"
    for number, sentence in (
        ("NaN", "wrong.json: NaN is not a number of JSON"),
        ("9000000000000000", "links.P1->P2.latency_ns: must not be"),
    ):
        content = json.loads(text)
        content["units"][0]["exec_ns"]["P1"] = float("nan") if number == "NaN" else int(number)
        content["cluster"]["links"][0]["latency_ns"] = 0 if number == "NaN" else 2**62
        path.write_text(json.dumps(content))
        found = run("leaderboards", "place", path, "--placer", "heft", "--json")
        assert (found.exit_code, found.stdout) == (ExitCode.CONTENT, "")
        assert sentence in found.stderr
        lines = [line for line in found.stderr.splitlines() if not line.startswith(("note:", "Hint:"))]
        assert len(lines) == 1, "no traceback of a process that died of it"


def test_a_placer_that_finds_nothing_is_reported_not_shown(tmp_path: Path) -> None:
    crowded = heft_canonical()
    units = tuple(replace(unit, workspace_bytes=2**31) for unit in crowded.units)
    save_problem(replace(crowded, units=units), tmp_path / "crowded.json")
    found = run("leaderboards", "place", tmp_path / "crowded.json", "--placer", "random", "--json")
    assert found.exit_code == ExitCode.CONTENT
    assert "placer 'random' is invalid: device" in found.stderr
    printed = json.loads(found.stdout)
    assert (printed["valid"], printed["cost"], printed["solution"]) == (False, None, None)


def test_a_model_becomes_a_problem_only_with_predictors(workspace: Path, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "schema: 1\nname: one\ndevices:\n  - {name: a, type: x, memory_bytes: 1000, target: onnxruntime-cpu-t1}\n"
    )
    start = ("--workspace", workspace, "leaderboards", "make-problem", "net.onnx", "-o", tmp_path / "p.json")
    missing = run(*start, "--cluster", cluster)
    assert missing.exit_code == ExitCode.CONTENT
    assert "no predictor of onnxruntime-cpu-t1" in missing.stderr
    cluster.write_text(cluster.read_text().replace("memory_bytes: 1000, ", ""))
    wrong = run(*start, "--cluster", cluster)
    assert (wrong.exit_code, "memory_bytes: missing" in wrong.stderr) == (ExitCode.CONTENT, True)
    assert not (tmp_path / "p.json").exists()


def test_a_serving_problem_reports_its_requests(tmp_path: Path) -> None:
    chain = graph({"a": 10, "b": 5}, [("a", ["b"])], pair(3))
    stream = Arrivals(arrival_ns=(0, 4, 100), target_ns=20)
    save_problem(replace(chain, objective="serving", arrivals=(stream,)), tmp_path / "serving.json")
    (tmp_path / "s.json").write_text('{"schema": 1, "device": {"a": "d0", "b": "d1"}}')
    told = json.loads(run("leaderboards", "simulate", tmp_path / "serving.json", tmp_path / "s.json", "--json").stdout)
    assert (told["cost"], told["p50_ns"], told["p99_ns"], told["missed"]) == (24, 18, 24, 1)
    placed = run("leaderboards", "place", tmp_path / "serving.json", "--placer", "opmark", "--budget", "1", "--json")
    found = json.loads(placed.stdout)
    assert (found["p99_ns"], found["requests"]) == (found["cost"], 3)
    assert "schedule" not in found["solution"]


def test_every_objective_can_be_asked_for() -> None:
    assert sorted(OBJECTIVES) == list(KNOWN.names())


def test_the_options_reach_the_command() -> None:
    @click.command()
    @workload_options
    def ask(**given: object) -> None:
        click.echo(given)

    found = CliRunner().invoke(ask, ["--objective", "serving", "--arrivals", "poisson", "--target", "20ms"])
    assert found.exit_code == 0, found.output
    assert "'target': 0.02" in found.output
    assert "'requests': 100" in found.output
    assert CliRunner().invoke(ask, ["--rate", "0"]).exit_code == 2
