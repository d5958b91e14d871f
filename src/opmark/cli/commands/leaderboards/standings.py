"""`opmark leaderboards score`, `standings`, `freeze`, `prove` and `site`: the ranking of a track's answers."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.leaderboards._options import (
    again_option,
    planning_budget_option,
    score_progress,
    seed_option,
    track_option,
)
from opmark.cli.completers import placers
from opmark.cli.options import DURATION, FOLDER, cluster_option, json_option, on_cluster, workspace
from opmark.cli.text.terminal import (
    MISSING,
    decimals_text,
    map_progress,
    progress_bar,
    seconds_text,
    show_json,
    show_table,
)
from opmark.core.units import counted

# More reasons than these are counted.
REASONS_AT_MOST = 5

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.progress import TaskID

    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.scoring.standings import Standings


@click.command(epilog="Example: opmark leaderboards score --track inference-latency --jobs 2")
@track_option
@click.option(
    "--placer", "names", multiple=True, shell_complete=placers, help="An algorithm; repeatable. Default: all."
)
@planning_budget_option
@seed_option("placers that draw random numbers")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="The number of runs at the same time."
)
@cluster_option
@again_option
@click.option("--hidden", is_flag=True, help="Use the hidden instances, made from OPMARK_HIDDEN_SEED.")
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
    cluster: str | None,
    again: bool,
    hidden: bool,
    as_json: bool,
) -> None:
    """Run placers on every problem of a track, and rank them.

    Their solutions are stored. A finished run is kept while code, problem, budget and seed stay the same; an
    interrupted one continues. With --cluster the placers run on the cluster's workers, and --jobs does not count.
    """
    from opmark.leaderboards.scoring.hidden import need_hidden
    from opmark.leaderboards.scoring.scoring_jobs import score_track
    from opmark.leaderboards.scoring.track import load_track
    from opmark.leaderboards.search.placer import PLACERS

    track = load_track(workspace(ctx).leaderboards, track_name)
    for name in names:
        PLACERS.load(name)
    half = need_hidden(track) if hidden else track
    with on_cluster(cluster) as workers, score_progress() as show:
        found = score_track(
            half,
            names or track.rules.default_placers(),
            budget_s=budget,
            seed=seed,
            jobs=jobs,
            again=again,
            progress=lambda step: show(track_name, step),
            cluster=workers,
        )
    _show_standings(found, as_json)


@click.command(epilog="Example: opmark leaderboards standings --track inference-latency")
@track_option
@click.option("--instances", is_flag=True, help="Also show every entry's result on every problem.")
@json_option
@click.pass_context
def standings(ctx: click.Context, *, track_name: str, instances: bool, as_json: bool) -> None:
    """Rank the stored solutions of a track.

    The ranking is also written into the track's standings.json. Beside the score stand the scores by split (public and
    validation instances, twins, hidden ones), the drop between them, the score by the source of costs (measured,
    imported, analytic), the score on a bad day (95 % of the draws of the predictors' errors are better) and the
    planning time.
    """
    from opmark.leaderboards.scoring.earlier_ranking import rank_from_earlier
    from opmark.leaderboards.scoring.track import load_track

    place = workspace(ctx)
    track = load_track(place.leaderboards, track_name)
    with progress_bar(transient=True) as bar, track.lock():
        task = bar.add_task(track_name)
        found = rank_from_earlier(
            track,
            place.cache / "standings",
            lambda done, total: bar.update(task, completed=done, total=total),
        )
        track.write_standings(found)
    _show_standings(found, as_json, units=units_of(track.problems()) if instances else None)


@click.command(epilog="Example: opmark leaderboards freeze --track my-track")
@track_option
@click.option(
    "--again", is_flag=True, help="Also replace references of instances from the recipe that a stored answer beats."
)
@cluster_option
@click.option("--hidden", is_flag=True, help="Freeze those of the hidden instances, made from OPMARK_HIDDEN_SEED.")
@json_option
@click.pass_context
def freeze(
    ctx: click.Context, *, track_name: str, again: bool, cluster: str | None, hidden: bool, as_json: bool
) -> None:
    """Make the best stored costs a track's references.

    Scores are relative to these references. With --cluster its workers compute the lower bounds.
    """
    from opmark.leaderboards.making.recipe import recipe_names
    from opmark.leaderboards.problem.rules.objective import format_cost
    from opmark.leaderboards.provisioning.pools import has_pools, pool_names
    from opmark.leaderboards.scoring.hidden import need_hidden
    from opmark.leaderboards.scoring.track import freeze_track, load_track

    track = load_track(workspace(ctx).leaderboards, track_name)
    half = need_hidden(track) if hidden else track
    names = pool_names if has_pools(track) else recipe_names
    known = {problem.name for problem in half.given} if hidden else names(track.folder) if again else set()
    with on_cluster(cluster) as workers, map_progress(track_name) as show:
        frozen = freeze_track(half, again=known if again else (), progress=show, place=workers)
    if as_json:
        show_json(frozen)
        return
    units = units_of(half.problems())
    rows = [
        (name, format_cost(one.best_known_ns, units[name]), format_cost(one.bound_ns, units[name]))
        for name, one in frozen.items()
    ]
    show_table(("frozen", "best known", "lower bound"), rows)


@click.command(epilog="Example: opmark leaderboards prove --track training-step --budget 60s")
@track_option
@click.option("--budget", type=DURATION, default="60s", show_default=True, help="The solvers' time per problem.")
@click.option("--problem", "only", multiple=True, help="Only this problem; several in this order. Default: all.")
@click.option("--check", is_flag=True, help="Decide stored bounds again instead of proving better ones.")
@cluster_option
@json_option
@click.pass_context
def prove(
    ctx: click.Context,
    *,
    track_name: str,
    budget: float,
    only: tuple[str, ...],
    check: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Prove better lower bounds for a track.

    They are stored with its problems. Integer programming, dynamic programming over the stages of pipelines and
    constraint programming (extra `solvers`) start from the best stored answers. Problems whose bound equals their best
    known cost are left out. An interrupted run goes on from where it was. Each bound has a certificate in the track's
    bounds.json. With --check the solver decides again, with another seed or order and nothing to minimise, that no
    solution costs less than a bound.
    """
    from opmark.leaderboards.scoring.proving import check_bounds, prove_bounds
    from opmark.leaderboards.scoring.track import load_track

    track = load_track(workspace(ctx).leaderboards, track_name)
    if check:
        with on_cluster(cluster) as workers, map_progress(track_name) as show:
            held = check_bounds(track, seconds=budget, only=only, progress=lambda _, now: show(now), place=workers)
        if as_json:
            show_json(held)
        else:
            show_table(("problem", "decided again"), [(name, "yes" if again else "") for name, again in held.items()])
        return
    with on_cluster(cluster) as workers, map_progress(track_name) as show:
        gained = prove_bounds(track, seconds=budget, only=only, progress=lambda _, now: show(now), place=workers)
    rows = [(problem.name, problem.reference) for problem in load_track(track.leaderboards, track_name).problems()]
    shares = {name: one.bound_ns / one.best_known_ns for name, one in rows if one is not None}
    if as_json:
        show_json({name: {"bound_over_best": share, "gained": gained.get(name, 0)} for name, share in shares.items()})
        return
    table = [(name, f"{share:.4f}", "better" if gained.get(name) else "") for name, share in shares.items()]
    show_table(("problem", "bound / best known", ""), table)


@click.command(epilog="Example: opmark leaderboards site -o site")
@click.option("-o", "--output", type=FOLDER, help="The folder to write. Default: site/ in the workspace.")
@json_option
@click.pass_context
def site(ctx: click.Context, output: Path | None, as_json: bool) -> None:
    """Write the static site of every track that has solutions."""
    from opmark.leaderboards.site.publishing import publish_tracks

    place = workspace(ctx)
    with progress_bar(transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(track: str, done: int, total: int) -> None:
            if track not in tasks:
                tasks[track] = bar.add_task(track)
            bar.update(tasks[track], completed=done, total=total)

        files = publish_tracks(place.leaderboards, output or place.root / "site", show)
    if as_json:
        show_json({"index": str(files[0]), "files": [str(path) for path in files]})
    else:
        click.echo(f"{files[0]} ({counted(sum(path.suffix == '.html' for path in files), 'page')})")


def _show_standings(found: "Standings", as_json: bool, *, units: "Mapping[str, str] | None" = None) -> None:
    """Show the ranking; with the `units` of the problems' costs, also every entry's result on every problem."""
    from opmark.leaderboards.scoring.standings import standings_table

    if found.note:
        click.echo(f"Note: {found.note}.", err=True)
    entries = standings_table(found, instances=units is not None)
    if as_json:
        absent = [{"rank": None, "name": name, "not_run": reason} for name, reason in found.not_run.items()]
        show_json([*entries, *(one for one in absent if one["name"] not in {entry["name"] for entry in entries})])
        return
    known = ("public", "validation", "twins", "hidden")
    splits = [key for key in known if any(entry.get(key) is not None for entry in entries)]
    proved = any(entry["proved"]["problems"] for entry in entries)
    sources = list(dict.fromkeys(name for entry in entries for name in entry["by_provenance"]))
    rows = [
        (
            str(entry["rank"]),
            entry["name"],
            f"{entry['score']:.3f}",
            f"{entry['low']:.3f} – {entry['high']:.3f}",
            *(decimals_text(entry.get(key)) for key in splits),
            *([_drop(entry)] if splits else []),
            *(decimals_text(entry["by_provenance"].get(name, {}).get("score")) for name in sources),
            MISSING if entry["gain"] is None else f"{entry['gain']:.0%}",
            *([_proved(entry)] if proved else []),
            decimals_text(entry["p95_quality"]),
            seconds_text(entry["planning_s"]),
        )
        for entry in entries
    ]
    ranked = {entry["name"] for entry in entries}
    width = len(rows[0]) if rows else 0
    rows += [(MISSING, name, "not run", *[MISSING] * (width - 3)) for name in found.not_run if name not in ranked]
    titles = ("rank", "entry", "score", "95 % interval", *splits, *(["drop"] if splits else []), *sources)
    optima = ["proved optima"] if proved else []
    show_table((*titles, "gain", *optima, "on a bad day", "planning"), rows, left=2)
    if any(entry.get("recalls") for entry in entries):
        click.echo("! Clearly better on stored instances than on drawn ones: the worst split is the score.", err=True)
    for name, reason in found.not_run.items():
        kept = "; its stored answers stay" if name in ranked else ""
        click.echo(f"{name} was not run: {reason}{kept}.", err=True)
    if units is not None:
        _show_instances(entries, units)
    _show_reasons(found, each=units is not None)


def _show_reasons(found: "Standings", *, each: bool) -> None:
    """Say why answers are invalid: `each` of them, or otherwise how many each entry has."""
    failed = [(row.name, result) for row in found.rows for result in row.results if result.reason]
    if each or len(failed) <= REASONS_AT_MOST:
        for name, result in failed:
            click.echo(f"{name} on {result.problem}: {found.reason(name, result)}", err=True)
        return
    counts = ", ".join(f"{name} {count}" for name, count in Counter(name for name, _ in failed).most_common())
    click.echo(f"{len(failed)} answers are invalid or missing ({counts}); --instances tells the reasons.", err=True)


def _drop(entry: "Mapping[str, Any]") -> str:
    """The share of the score that is lost on instances that nobody knows, with a mark where it is too large."""
    if entry.get("drop") is None:
        return MISSING
    return f"{entry['drop']:.0%}{' !' if entry['recalls'] else ''}"


def _proved(entry: "Mapping[str, Any]") -> str:
    """The problems that an entry solves within 1 % of a proved optimum, of all that have one."""
    return f"{entry['proved']['within_1_percent']} of {entry['proved']['problems']}"


def units_of(problems: "Iterable[Problem]") -> dict[str, str]:
    """The unit of each problem's cost, by its name."""
    return {problem.name: problem.unit for problem in problems}


def _show_instances(entries: "Sequence[Mapping[str, Any]]", units: "Mapping[str, str]") -> None:
    from opmark.leaderboards.problem.rules.objective import format_cost
    from opmark.leaderboards.problem.schedule import INVALID_COST

    costs = ("cost_ns", "p95_ns", "bound_ns")
    unknown = {None, INVALID_COST}
    rows = [
        (
            one["problem"],
            entry["name"],
            f"{one['quality']:.3f}" if one["scored"] else f"({one['quality']:.3f})",
            *(MISSING if one[key] in unknown else format_cost(one[key], units[one["problem"]]) for key in costs),
            seconds_text(one["planning_s"]),
        )
        for entry in entries
        for one in entry["instances"]
    ]
    columns = ("problem", "entry", "quality", "cost", "95 % within", "lower bound", "planning")
    show_table(columns, sorted(rows, key=lambda row: row[0]), left=2)
    if any(not one["scored"] for entry in entries for one in entry["instances"]):
        click.echo("Qualities in brackets are not scored: no placement gains anything there.", err=True)
