"""`opmark leaderboards make-track`: a track's problems from its recipe."""

import click

from opmark.cli.completers import tracks
from opmark.cli.options import workspace
from opmark.cli.text.terminal import json_option, show_json, show_table


@click.command(name="make-track", epilog="Example: opmark leaderboards make-track inference-latency")
@click.argument("track", shell_complete=tracks)
@click.option("--again", is_flag=True, help="Judge every candidate again, kept or not.")
@json_option
@click.pass_context
def make_track(ctx: click.Context, *, track: str, again: bool, as_json: bool) -> None:
    """Make the problems of TRACK from its recipe.yaml.

    Those that leave something to win are kept. What did not change keeps its file; an interrupted run goes on.
    Candidates that need predictors this workspace does not have wait for them.
    """
    from opmark.leaderboards.scoring.selection import make_track as make

    place = workspace(ctx)
    steps = []
    for step in make(place, track, again=again):
        steps.append(step)
        click.echo(f"{step.name}: {step.status}{f' ({step.reason})' if step.reason else ''}", err=True)
    if as_json:
        show_json(steps)
        return
    rows = [
        (step.name, step.status, str(step.units or ""), "" if step.headroom is None else f"{step.headroom:.0%}")
        for step in steps
    ]
    show_table(("candidate", "status", "units", "headroom"), rows, left=2)
