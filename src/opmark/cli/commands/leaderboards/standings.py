"""`opmark leaderboards score`, `standings` and `freeze`: entries, ranked by what is stored."""

from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.leaderboards.submissions import score_progress
from opmark.cli.completers import placers, tracks
from opmark.cli.options import DURATION, workspace
from opmark.cli.text.terminal import json_option, show_json, show_table
from opmark.core.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opmark.leaderboards.scoring.standings import Standings


@click.command(epilog="Example: opmark leaderboards score --track inference-latency --jobs 2")
@click.option("--track", "track_name", required=True, shell_complete=tracks, help="The track's folder name.")
@click.option(
    "--placer",
    "names",
    multiple=True,
    shell_complete=placers,
    help="Only these algorithms; default: all. Repeatable.",
)
@click.option("--budget", type=DURATION, help="Time per problem; default: the track's.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For placers that draw.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many runs at a time.")
@click.option("--again", is_flag=True, help="Repeat runs that are finished.")
@click.option("--hidden", is_flag=True, help="On the hidden instances, made from OPMARK_HIDDEN_SEED.")
@json_option
@click.pass_context
def score(
    ctx: click.Context,
    *,
    track_name: str,
    names: tuple[str, ...],
    budget: float | None,
    seed: int,
    jobs: int,
    again: bool,
    hidden: bool,
    as_json: bool,
) -> None:
    """Run placers on every problem of a track, and rank them.

    Their solutions are kept. A finished run is kept while code, problem, budget and seed stay the same; one that was
    interrupted goes on.
    """
    from opmark.leaderboards.scoring.hidden import need_hidden
    from opmark.leaderboards.scoring.scoring_jobs import score_track
    from opmark.leaderboards.scoring.track import load_track
    from opmark.leaderboards.search.placer import PLACERS

    track = load_track(workspace(ctx).leaderboards, track_name)
    for name in names:
        PLACERS.load(name)
    half = need_hidden(track) if hidden else track
    with score_progress() as show:
        found = score_track(
            half,
            names or PLACERS.names(),
            budget_s=budget,
            seed=seed,
            jobs=jobs,
            again=again,
            progress=lambda step: show(track_name, step),
        )
    _show_standings(found, as_json)


@click.command(epilog="Example: opmark leaderboards standings --track inference-latency")
@click.option("--track", "track_name", required=True, shell_complete=tracks, help="The track's folder name.")
@click.option("--instances", is_flag=True, help="Also what every entry did on every problem.")
@json_option
@click.pass_context
def standings(ctx: click.Context, *, track_name: str, instances: bool, as_json: bool) -> None:
    """Rank the stored solutions of a track.

    The ranking is also written into its standings.json. Beside the score stand its part on a bad day (95 % of the draws
    of the predictors' errors are better) and how long the entry planned.
    """
    from opmark.leaderboards.scoring.track import load_track

    track = load_track(workspace(ctx).leaderboards, track_name)
    found = track.standings()
    track.write_standings(found)
    _show_standings(found, as_json, instances=instances)


@click.command(epilog="Example: opmark leaderboards freeze --track my-track")
@click.option("--track", "track_name", required=True, shell_complete=tracks, help="The track's folder name.")
@click.option(
    "--again", is_flag=True, help="Also where a stored answer beats the reference of an instance that the recipe makes."
)
@click.option("--hidden", is_flag=True, help="Those of the hidden instances, made from OPMARK_HIDDEN_SEED.")
@json_option
@click.pass_context
def freeze(ctx: click.Context, *, track_name: str, again: bool, hidden: bool, as_json: bool) -> None:
    """Make the best stored costs a track's references.

    Scores are held against them.
    """
    from opmark.leaderboards.making.recipe import recipe_names
    from opmark.leaderboards.scoring.hidden import need_hidden
    from opmark.leaderboards.scoring.track import freeze_track, load_track

    track = load_track(workspace(ctx).leaderboards, track_name)
    if hidden:
        half = need_hidden(track)
        frozen = freeze_track(half, again={problem.name for problem in half.given} if again else ())
    else:
        frozen = freeze_track(track, again=recipe_names(track.folder) if again else ())
    if as_json:
        show_json(frozen)
        return
    rows = [(name, format_ns(one.best_known_ns), format_ns(one.bound_ns)) for name, one in frozen.items()]
    show_table(("frozen", "best known", "lower bound"), rows)


def _show_standings(found: "Standings", as_json: bool, *, instances: bool = False) -> None:
    from opmark.leaderboards.scoring.standings_table import standings_table

    if found.note:
        click.echo(f"Note: {found.note}.", err=True)
    entries = standings_table(found, instances=instances)
    if as_json:
        show_json(entries)
        return
    rows = [
        (
            str(entry["rank"]),
            entry["name"],
            f"{entry['score']:.3f}",
            f"{entry['low']:.3f} – {entry['high']:.3f}",
            _percent(entry["gain"]),
            "–" if entry["p95_quality"] is None else f"{entry['p95_quality']:.3f}",
            _seconds(entry["planning_s"]),
        )
        for entry in entries
    ]
    show_table(("rank", "entry", "score", "95 % interval", "gain", "on a bad day", "planning"), rows, left=2)
    if instances:
        _show_instances(entries)
    for row in found.rows:
        for result in row.results:
            if result.reason:
                click.echo(f"{row.name} on {result.problem}: {found.reason(row.name, result)}", err=True)


def _show_instances(entries: "Sequence[Mapping[str, Any]]") -> None:
    rows = [
        (
            one["problem"],
            entry["name"],
            f"{one['quality']:.3f}" if one["scored"] else f"({one['quality']:.3f})",
            *("–" if one[key] is None else format_ns(one[key]) for key in ("cost_ns", "p95_ns", "bound_ns")),
            _seconds(one["planning_s"]),
        )
        for entry in entries
        for one in entry["instances"]
    ]
    columns = ("problem", "entry", "quality", "cost", "95 % within", "lower bound", "planning")
    show_table(columns, sorted(rows, key=lambda row: row[0]), left=2)
    if any(not one["scored"] for entry in entries for one in entry["instances"]):
        click.echo("Qualities in brackets are not scored: nothing is to be won there.", err=True)


def _seconds(value: float | None) -> str:
    return "–" if value is None else format_ns(value * 1e9)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
