"""Options that say what a new problem asks."""

import click
from click.testing import CliRunner

from opmark.cli.question import OBJECTIVES, question_options
from opmark.leaderboards.problem.rules.objective import OBJECTIVES as KNOWN


def test_every_objective_can_be_asked_for() -> None:
    assert sorted(OBJECTIVES) == list(KNOWN.names())


def test_the_options_reach_the_command() -> None:
    @click.command()
    @question_options
    def ask(**given: object) -> None:
        click.echo(given)

    found = CliRunner().invoke(ask, ["--objective", "serving", "--arrivals", "poisson", "--target", "20ms"])
    assert found.exit_code == 0, found.output
    assert "'target': 0.02" in found.output
    assert "'requests': 100" in found.output
    assert CliRunner().invoke(ask, ["--rate", "0"]).exit_code == 2
