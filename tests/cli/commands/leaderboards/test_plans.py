"""`opmark leaderboards replay-plan` and `import --format sailor`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.core.shipped import shipped_content
from opmark.leaderboards.problem.files import load_problem

LAYERS = shipped_content().leaderboards / "layers" / "sailor"
PLAN = LAYERS / "plans" / "mit" / "N4_N4_D4.json"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["leaderboards", *map(str, arguments)])


def test_one_plan_and_several() -> None:
    folders = ("--profiles", LAYERS / "profiles", "--networks", LAYERS / "networks")
    one = json.loads(run("replay-plan", PLAN, *folders, "--json").stdout)
    assert one["error"] == pytest.approx(one["predicted_s"] / one["measured_s"] - 1)
    assert one["measured_s"] == json.loads(PLAN.read_text())["real"]
    assert sum(one["parts"].values()) == pytest.approx(one["predicted_s"])
    two = json.loads(run("replay-plan", PLAN, PLAN, "--json").stdout)
    assert two == [one, one]
    table = run("replay-plan", PLAN).stdout
    assert "N4_N4_D4" in table
    assert "reduction" in table


def test_without_a_measurement_and_with_a_slip(tmp_path: Path) -> None:
    document = json.loads((LAYERS / "plans" / "clariden" / "N4_N4_D1.json").read_text())
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({key: document[key] for key in ("pipeline_list", "mbs")} | {"gbs": 2}))
    found = run("replay-plan", plan, "--json")
    assert json.loads(found.stdout)["error"] is None
    assert "note: " in found.stderr
    assert "29 between 18 and 20 is read as 19" in found.stderr
    assert run("replay-plan", plan).exit_code == 0


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    document = json.loads(PLAN.read_text())
    plan, empty = tmp_path / "plan.json", tmp_path / "empty"
    empty.mkdir()

    def refused(content: object, *options: object) -> str:
        plan.write_text(content if isinstance(content, str) else json.dumps(content))
        found = run("replay-plan", plan, *options)
        assert found.exit_code == ExitCode.CONTENT
        assert found.stdout == ""
        return found.stderr

    assert "plan.json:1: not JSON" in refused("{")
    unknown = json.loads(json.dumps(document).replace("RTX-2080", "RTX-9090"))
    assert "OPT-350: no profile of RTX-9090" in refused(unknown)
    short = json.loads(json.dumps(document))
    short["pipeline_list"][0]["layers_per_stage"][0].pop()
    assert "no model has 25 layers" in refused(short)
    short["pipeline_list"][0]["layers_per_stage"][0][3] = 2
    assert "layer 2 stands twice" in refused(short)
    assert "multizone_bandwidths_het.json: no such file" in refused(document, "--networks", empty)
    assert "holds no profile" in refused(document, "--profiles", empty)
    elsewhere = json.loads(json.dumps(document).replace("us-central1-a", "moon"))
    assert "no bandwidth between" in refused(elsewhere)


def test_a_plan_becomes_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    done = run("import", PLAN, "--format", "sailor", "--objective", "latency", "-o", path, "--json")
    assert json.loads(done.stdout)["units"] == 3 * 26
    problem = load_problem(path)
    assert problem.in_micro_batches
    assert problem.micro_batches == 128
    assert {device.type for device in problem.cluster.devices} == {"RTX-3090x8", "RTX-2080x8", "Titan-RTXx8"}
    assert {device.provenance for device in problem.cluster.devices} == {"imported"}
    forward = next(unit for unit in problem.units if unit.name == "layer1.forward")
    # the profile's seconds at micro-batch 2, tensor parallelism 8; half of it at micro-batch 1
    assert forward.exec_ns["RTX-3090x8"] == pytest.approx(37.9e6, rel=0.01)
    assert forward.split_ns["RTX-3090x8"] == (pytest.approx(15.7e6, rel=0.01),)
    placed = run("place", path, "--placer", "pipedream", "--budget", "2s", "--json")
    assert json.loads(placed.stdout)["valid"]
    refused = run("import", PLAN, "--format", "sailor", "--devices", "3", "-o", path)
    assert refused.exit_code == ExitCode.USAGE
    assert "states devices and links" in refused.stderr
    assert run("import", PLAN, "--format", "sailor", "--objective", "cost", "-o", path).exit_code == ExitCode.USAGE
