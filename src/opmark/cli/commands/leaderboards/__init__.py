"""`opmark leaderboards`: tracks, problems, placers and standings."""

import click

from opmark.cli.commands.leaderboards.execution import execute
from opmark.cli.commands.leaderboards.fidelity import fidelity, fidelity_run
from opmark.cli.commands.leaderboards.plans import replay_plan
from opmark.cli.commands.leaderboards.problems import import_problem, make_problem, problems
from opmark.cli.commands.leaderboards.savings import savings
from opmark.cli.commands.leaderboards.serving import serve
from opmark.cli.commands.leaderboards.solutions import bound, check_trace, place, simulate
from opmark.cli.commands.leaderboards.standings import freeze, prove, score, site, standings
from opmark.cli.commands.leaderboards.submissions import check, submit
from opmark.cli.commands.leaderboards.tracks import make_track, tracks


@click.group(name="leaderboards")
def leaderboards() -> None:
    """Tracks, problems, placers and their standings."""


for _command in (
    *(bound, check, check_trace, execute, fidelity, fidelity_run, freeze, import_problem, make_problem, make_track),
    *(place, problems, prove, replay_plan, savings, score, serve, simulate, site, standings, submit, tracks),
):
    leaderboards.add_command(_command)

COMMAND = leaderboards
