"""`opmark leaderboards check` and `submit`: the way in for algorithms of others."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.completers import tracks
from opmark.cli.options import DURATION, workspace
from opmark.cli.text.terminal import json_option, progress_bar, show_json, show_table
from opmark.core.errors import CheckFailedError, NothingSelectedError
from opmark.core.units import format_ns

if TYPE_CHECKING:
    from opmark.leaderboards.scoring.scoring_jobs import Progress
    from opmark.leaderboards.scoring.track import Track

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


def sandbox_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--sandbox` and what must be said to go without one."""
    names = click.Choice(["bubblewrap", "none"])
    kind = click.option(
        "--sandbox", "kind", type=names, default="bubblewrap", show_default=True, help="What it runs in."
    )
    trust = click.option("--i-trust-this", "trusted", is_flag=True, help="With --sandbox none: it can do what you can.")
    return kind(trust(command))


@click.command(epilog="Example: opmark leaderboards check my-idea")
@click.argument("folder", type=FOLDER)
@click.option(
    "--track",
    "names",
    multiple=True,
    shell_complete=tracks,
    help="Only this track's problems; default: all. Repeatable.",
)
@click.option("--problems", "most", type=click.IntRange(min=1), default=3, show_default=True, help="Per track.")
@click.option("--budget", type=DURATION, help="Time per problem; default: the track's.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For what is drawn.")
@sandbox_options
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    *,
    folder: Path,
    names: tuple[str, ...],
    most: int,
    budget: float | None,
    seed: int,
    kind: str,
    trusted: bool,
    as_json: bool,
) -> None:
    """Try the submission in FOLDER, and say what has to change.

    It runs on the smallest public problems.
    """
    from opmark.leaderboards.submissions.check import check as check_folder
    from opmark.leaderboards.submissions.check import smallest_first
    from opmark.leaderboards.submissions.sandbox.choice import sandbox

    chosen = sandbox(kind, trusted=trusted)
    problems = []
    for track in _tracks(ctx, names):
        small = smallest_first(track.problems("public"))[:most]
        problems += [(problem, track.rules.budget_for(problem) if budget is None else budget) for problem in small]
    with progress_bar(transient=True) as bar:
        task = bar.add_task("checking")
        found = check_folder(
            folder,
            problems,
            chosen,
            seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        show_json(found)
    else:
        cells = [
            (trial.problem, _cost(trial.cost, trial.unit), _seconds(trial.answered_s), _seconds(trial.planning_s))
            for trial in found.trials
        ]
        if cells:
            show_table(("problem", "cost", "answered", "ended"), cells)
        _show_layers(found.layers)
        for warning in found.warnings:
            click.echo(f"{click.style('Warning:', fg='yellow')} {warning}", err=True)
    if found.errors:
        for error in found.errors[:-1]:
            click.echo(f"{click.style('To fix:', fg='red')} {error}", err=True)
        raise CheckFailedError(found.errors[-1], hint=f"change it and run `opmark leaderboards check {folder}` again")
    if not as_json:
        click.echo(f"{found.name} can be handed in: opmark leaderboards submit {folder}")


@click.command(epilog="Example: opmark leaderboards submit my-idea --jobs 2")
@click.argument("folder", type=FOLDER)
@click.option(
    "--track",
    "names",
    multiple=True,
    shell_complete=tracks,
    help="Only this track; default: all it is made for. Repeatable.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many problems at a time.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For what is drawn.")
@click.option("--again", is_flag=True, help="Repeat runs that are finished.")
@sandbox_options
@json_option
@click.pass_context
def submit(
    ctx: click.Context,
    *,
    folder: Path,
    names: tuple[str, ...],
    jobs: int,
    seed: int,
    again: bool,
    kind: str,
    trusted: bool,
    as_json: bool,
) -> None:
    """Score the submission in FOLDER, and rank it.

    It runs on every problem of its tracks; its solutions are kept.
    """
    from opmark.leaderboards.submissions.manifest import load_submission
    from opmark.leaderboards.submissions.sandbox.choice import sandbox
    from opmark.leaderboards.submissions.submit import submit as submit_folder

    chosen = sandbox(kind, trusted=trusted)
    made_for = load_submission(folder).manifest.tracks
    tracks = _tracks(ctx, names or made_for)
    with score_progress() as show:
        receipt = submit_folder(folder, tracks, chosen, jobs=jobs, seed=seed, again=again, progress=show)
    if as_json:
        show_json(receipt)
        return
    rows = []
    for placed in receipt.placed:
        row, hidden = placed.row, placed.hidden
        interval = f"{row.low:.3f} – {row.high:.3f}"
        there = "–" if hidden is None else f"{hidden.score:.3f}"
        rows.append((placed.track, f"{row.rank} of {placed.entries}", f"{row.score:.3f}", interval, there))
    show_table(("track", "rank", "score", "95 % interval", "hidden"), rows)
    _show_layers(receipt.layers)
    for placed in receipt.placed:
        for result in placed.row.results:
            if result.reason:
                click.echo(f"{placed.track}, {result.problem}: {result.reason}", err=True)


@contextlib.contextmanager
def score_progress() -> "Iterator[Callable[[str, Progress], None]]":
    """A progress bar with the time left for scoring; calls take the track's label and how far it is."""
    with progress_bar(transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(label: str, step: "Progress") -> None:
            if label not in tasks:
                tasks[label] = bar.add_task(label, total=step.total)
                if step.kept:
                    click.echo(f"{label}: {step.kept} finished runs are kept; --again repeats them.", err=True)
            bar.update(tasks[label], completed=step.done, left_s=step.left_s)

        yield show


def _tracks(ctx: click.Context, names: tuple[str, ...]) -> "list[Track]":
    """The tracks called so, or every one that has problems."""
    from opmark.leaderboards.scoring.track import load_track, track_names

    folder = workspace(ctx).leaderboards
    found = [load_track(folder, name) for name in names or track_names(folder)]
    ready = [track for track in found if names or track.problem_paths()]
    if not ready:
        raise NothingSelectedError("no track of this workspace has problems", where=str(folder))
    return ready


def _show_layers(layers: Sequence[str]) -> None:
    for layer in layers:
        click.echo(f"Layer: {layer}", err=True)


def _cost(cost: int | None, unit: str) -> str:
    from opmark.leaderboards.problem.rules.objective import format_cost

    return "–" if cost is None else format_cost(cost, unit)


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else format_ns(seconds * 1e9)
