"""`opmark leaderboards savings`: medians by goal, with intervals, as text and as JSON."""

import json

from click.testing import CliRunner

from opmark.cli.main import cli
from opmark.core.errors import ExitCode


def run(*arguments):
    return CliRunner().invoke(cli, ["leaderboards", "savings", "--track", "provisioning", *arguments])


def test_the_search_never_costs_more_than_equal_types_and_the_median_has_an_interval():
    found = json.loads(run("--json").stdout)
    whole = found["summary"]["all"]
    assert whole["pools"] >= 40
    assert whole["worse"] == 0
    assert whole["low"] <= whole["median"] <= whole["high"] <= whole["most"] < 1
    assert whole["better"] == found["summary"]["those that differ"]["pools"]
    assert sum(found["summary"][goal]["pools"] for goal in {pool["goal"] for pool in found["pools"]}) == whole["pools"]


def test_a_table_has_every_goal_and_an_unknown_entry_is_refused():
    shown = run("--instances").stdout
    for words in ("demand", "front-per-sample", "median saving", "bert-base-b8-cloud-gpus-demand-140"):
        assert words in shown
    refused = run("--entry", "nobody")
    assert refused.exit_code == ExitCode.NOTHING_SELECTED
    assert "no answers of 'nobody'" in refused.output
