"""`opmark leaderboards tracks` and `make-track`."""

import click

from opmark.cli import completers
from opmark.cli.options import json_option, workspace
from opmark.cli.text.terminal import show_json, show_table


@click.command(epilog="Example: opmark leaderboards tracks")
@json_option
@click.pass_context
def tracks(ctx: click.Context, as_json: bool) -> None:
    """List the tracks of this workspace."""
    from opmark.leaderboards.scoring.track import load_track, track_names

    folder = workspace(ctx).leaderboards
    rows = [
        {
            "name": track.name,
            "title": track.rules.title,
            "version": track.rules.version,
            "objective": track.rules.objective,
            "semantics": track.rules.semantics,
            "problems": len(track.problem_paths()),
            "entries": len(track.solutions()),
        }
        for track in (load_track(folder, name) for name in track_names(folder))
    ]
    if as_json:
        show_json(rows)
        return
    columns = ("name", "title", "version", "problems", "entries")
    show_table(columns, [[str(row[column]) for column in columns] for row in rows], left=2)


@click.command(name="make-track", epilog="Example: opmark leaderboards make-track inference-latency")
@click.argument("track", shell_complete=completers.tracks)
@click.option("--again", is_flag=True, help="Judge every candidate again, kept or not.")
@json_option
@click.pass_context
def make_track(ctx: click.Context, *, track: str, again: bool, as_json: bool) -> None:
    """Make the problems of TRACK from its recipe.

    The recipe is recipe.yaml, or pools.yaml for pools of devices. Candidates on which placers can gain something are
    kept. A candidate that did not change keeps its file, and an interrupted run continues. Candidates that need
    predictors missing from this workspace wait for them.
    """
    from opmark.leaderboards.provisioning.pools import has_pools, make_pools
    from opmark.leaderboards.scoring.selection import make_track as make
    from opmark.leaderboards.scoring.track import load_track

    place = workspace(ctx)
    steps = []
    pools = has_pools(load_track(place.leaderboards, track))
    for step in (make_pools if pools else make)(place, track, again=again):
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
