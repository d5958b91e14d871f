"""`opmark list`: every registered name, with the sentence its file begins with."""

import json

import pytest
from click.testing import CliRunner

from opmark.bench.worker.backend import BACKENDS
from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.core.registry import PACKAGES, extensions
from opmark.kinds import KINDS
from opmark.leaderboards.problem.rules.profile import PROFILES
from opmark.leaderboards.search.placer import PLACERS
from opmark.predictors.estimators import ESTIMATORS


@pytest.mark.parametrize(
    ("what", "registry"),
    [
        ("kinds", KINDS),
        ("backends", BACKENDS),
        ("estimators", ESTIMATORS),
        ("placers", PLACERS),
        ("profiles", PROFILES),
    ],
)
def test_names_are_those_of_the_registry(what, registry):
    result = CliRunner().invoke(cli, ["list", what, "--json"])
    assert result.exit_code == 0, result.stderr
    assert tuple(row["name"] for row in json.loads(result.stdout)) == registry.names()
    assert registry.names()[0] in CliRunner().invoke(cli, ["list", what]).stdout


@pytest.mark.parametrize("what", PACKAGES)
def test_every_extension_says_what_it_is(what):
    found = extensions(what)
    assert found
    assert all(len(item.summary) > 10 for item in found)


def test_formats_are_those_of_releases_and_of_problems():
    modules = {item.name: item.module for item in extensions("formats")}
    assert modules["pipedream"] == "opmark.leaderboards.making.importers.pipedream"
    assert modules["neusight"] == "opmark.datasets.importers.neusight"


def test_an_unknown_sort_is_a_usage_error():
    result = CliRunner().invoke(cli, ["list", "placer"])
    assert result.exit_code == ExitCode.USAGE
    assert "placers" in result.stderr


def test_the_help_names_every_list() -> None:
    text = " ".join(CliRunner().invoke(cli, ["list", "--help"]).stdout.split())
    assert not [name for name in PACKAGES if name not in text]
