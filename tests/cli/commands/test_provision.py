"""`opmark provision` as scripts use it: JSON, a page, exit codes, one sentence per mistake."""

import json

import pytest
from click.testing import CliRunner

from opmark.cli.main import cli


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
        (("--budget", "0/h"), "must be positive"),
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
