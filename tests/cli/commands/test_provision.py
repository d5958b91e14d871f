"""`opmark provision` as scripts use it: JSON, a page, exit codes, one sentence per mistake."""

import json

import pytest
from click.testing import CliRunner
from tests.leaderboards.provisioning.offers import diamond

from opmark.cli.commands.provision import _explore
from opmark.cli.main import cli
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.recommendation import recommend
from opmark.leaderboards.search import compilation


def run(*arguments):
    return CliRunner().invoke(cli, ["provision", *arguments])


def test_the_answer_is_json_with_every_role_and_a_page_is_written(tmp_path):
    page = tmp_path / "answer.html"
    common = ("random-cells#1", "--catalogue", "cloud-gpus", "--devices-at-most", "2", "--planning-time", "1s")
    result = run(*common, "--json", "-o", str(page))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    for role in ("recommended", "best_equal", "cheapest_single", "fastest_single"):
        one = found[role]
        assert sum(one["devices"].values()) <= 2
        assert one["price_per_hour"] > 0
        assert one["low"] <= one["high"]
    assert found["recommended"]["cost_per_million"] <= found["best_equal"]["cost_per_million"]
    assert found["cheapest_single"]["devices"] == {"t4": 1}
    assert set(found["placement"]["device"].values()) <= {
        "a100-0",
        "a100-1",
        "v100-0",
        "v100-1",
        "t4-0",
        "t4-1",
        "p100-0",
        "p100-1",
    }
    assert found["seconds"] > 0
    assert "<svg" in page.read_text(encoding="utf-8")


def test_a_goal_out_of_reach_names_the_closest_fleet():
    result = run(
        *("random-cells#1", "--catalogue", "cloud-gpus", "--devices-at-most", "1"),
        *("--planning-time", "1s", "--at-most", "0.001ms"),
    )
    assert result.exit_code == 5
    assert "comes closest" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at-most", "1s", "--budget", "2/h"), "a goal has one limit"),
        (("--budget", "cheap"), "is not a price per hour"),
        (("--budget", "0/h"), "'--budget': '0/h' is not a positive, finite price per hour; write it like 6/h"),
        (("--budget=-1/h",), "'--budget': '-1/h' is not a price per hour; write it like 6/h"),
        (("--budget", "nan"), "'--budget': 'nan' is not a price per hour; write it like 6/h"),
        (("--budget", "9" * 400), "is not a positive, finite price per hour"),
        (("--at-most", "0ms"), "'--at-most': '0ms' is no time; write a positive duration such as 40ms"),
        (("--at-most=-3ms",), "'--at-most': '-3ms' is not a duration; write it like 90, 90s, 500ms"),
        (("--at-most", "nan"), "'--at-most': 'nan' is not a duration"),
        (("--at-most", "1e999"), "'--at-most': '1e999' is not a duration"),
        (("--samples-per-second", "0"), "'--samples-per-second'"),
        (("--dimension", "batch=0"), "--dimension: 'batch=0' is not a dimension"),
        (("--devices-at-most", "1000000000"), "is not in the range"),
    ],
)
def test_wrong_options_are_usage_errors(arguments, message):
    result = run("random-cells#1", "--catalogue", "cloud-gpus", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_an_unknown_catalogue_is_refused_with_the_known_ones():
    result = run("random-cells#1", "--catalogue", "cloud-gpu")
    assert result.exit_code == 2
    assert "cloud-gpus" in result.output


def test_the_second_best_type_and_the_stability_are_told():
    result = run("random-cells#1", "--catalogue", "cloud-gpus", "--devices-at-most", "1", "--planning-time", "1s")
    assert result.exit_code == 0, result.output
    assert "The second-best type alone is" in result.output
    assert "of the draws" in result.output


@pytest.mark.parametrize(
    ("model", "catalogue", "code", "message"),
    [
        ("resnet-5000", "cloud-gpus", 2, "no network is called 'resnet-5000'"),
        ("missing.onnx", "cloud-gpus", 3, "missing.onnx: no such file"),
        ("random-cells#1", "nothing.yaml", 3, "nothing.yaml: no such file"),
    ],
)
def test_what_does_not_exist_is_one_sentence(model, catalogue, code, message):
    result = run(model, "--catalogue", catalogue)
    assert result.exit_code == code, result.output
    assert message in result.output
    assert result.output.count(message) == 1


class Interrupted(Exploration):
    """A search that somebody ends with Ctrl-C once it has looked at the single devices."""

    def run(self, planned_s, *, progress=lambda _: None, stop=lambda: False):
        super().run(planned_s, progress=progress, stop=lambda: True)
        raise KeyboardInterrupt


def test_an_interrupted_search_keeps_what_it_found(capsys):
    exploration = Interrupted(diamond(), Goal(), devices_at_most=2)
    _explore(exploration, 60.0)
    assert recommend(exploration, 1.0, draws=5).recommended.fleet.size == 1
    said = capsys.readouterr().err
    assert "stopped early" in said
    assert "note: first answer: 1 " in said


def test_what_is_not_compiled_yet_is_compiled_before_planning(monkeypatch):
    steps = []
    monkeypatch.setattr(compilation, "is_compiled", lambda: bool(steps))
    monkeypatch.setattr(compilation, "compile_in_background", lambda: None)
    monkeypatch.setattr(compilation, "compile_once", lambda: steps.append("compiled"))
    search = Exploration.run

    def planned(exploration, *arguments, **options):
        steps.append("planned")
        search(exploration, *arguments, **options)

    monkeypatch.setattr(Exploration, "run", planned)
    result = run("random-cells#1", "--catalogue", "cloud-gpus", "--devices-at-most", "1", "--planning-time", "1s")
    assert result.exit_code == 0, result.output
    assert steps == ["compiled", "planned"]
