"""`opmark leaderboards check` and `submit`: algorithms that others hand in."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli import completers
from opmark.cli.commands.leaderboards._options import (
    again_option,
    planning_budget_option,
    sandbox_options,
    score_progress,
    seed_option,
)
from opmark.cli.options import FILE, json_option, workspace
from opmark.cli.text.terminal import MISSING, progress_bar, seconds_text, show_json, show_labelled, show_table
from opmark.core.errors import CheckFailedError, NothingSelectedError

if TYPE_CHECKING:
    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.scoring.track import Track
    from opmark.leaderboards.submissions.check import Checked
    from opmark.leaderboards.submissions.submit import Receipt

_folder_argument = click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))


@click.command(epilog="Example: opmark leaderboards check my-idea")
@_folder_argument
@click.option(
    "--track",
    "names",
    multiple=True,
    shell_complete=completers.tracks,
    help="Only this track's problems; repeatable. Default: all tracks.",
)
@click.option(
    "--problems",
    "most",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="The number of problems per track.",
)
@planning_budget_option
@seed_option("the submission's random numbers")
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
    from opmark.leaderboards.submissions.sandbox.choice import sandbox

    with progress_bar(transient=True) as bar:
        task = bar.add_task("reading the problems", total=None)

        def show(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        chosen = sandbox(kind, trusted=trusted, private=(workspace(ctx).root,))
        problems = _smallest_problems(_tracks(ctx, names), most, budget)
        found = check_folder(folder, problems, chosen, seed=seed, progress=show)
    if as_json:
        show_json(found)
    else:
        _show_check(found)
    if found.errors:
        for error in found.errors[:-1]:
            show_labelled("To fix:", error, colour="red")
        raise CheckFailedError(found.errors[-1], hint=f"change it and run `opmark leaderboards check {folder}` again")
    if not as_json:
        click.echo(f"{found.name} can be submitted: opmark leaderboards submit {folder}")


def _smallest_problems(tracks: "Sequence[Track]", most: int, budget: float | None) -> "list[tuple[Problem, float]]":
    """The `most` smallest public problems of each track, each with its planning time in seconds."""
    from opmark.leaderboards.submissions.check import smallest_first

    return [
        (problem, track.rules.budget_for(problem) if budget is None else budget)
        for track in tracks
        for problem in smallest_first(track.problems("public"))[:most]
    ]


def _show_check(found: "Checked") -> None:
    from opmark.leaderboards.problem.rules.objective import format_cost

    rows = [
        (
            trial.problem,
            MISSING if trial.cost is None else format_cost(trial.cost, trial.unit),
            seconds_text(trial.answered_s),
            seconds_text(trial.planning_s),
        )
        for trial in found.trials
    ]
    if rows:
        show_table(("problem", "cost", "answered", "ended"), rows)
    _show_layers(found.layers)
    for warning in found.warnings:
        show_labelled("Warning:", warning)


@click.command(epilog="Example: opmark leaderboards submit my-idea --jobs 2")
@_folder_argument
@click.option(
    "--track",
    "names",
    multiple=True,
    shell_complete=completers.tracks,
    help="Only this track; repeatable. Default: all tracks in the submission's manifest.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="The number of problems at the same time."
)
@click.option(
    "--key",
    "key_file",
    type=FILE,
    help="The private key that signs the submission. Default: your own, made at your first submission.",
)
@seed_option("the submission's random numbers")
@again_option
@sandbox_options
@json_option
@click.pass_context
def submit(
    ctx: click.Context,
    *,
    folder: Path,
    names: tuple[str, ...],
    jobs: int,
    key_file: Path | None,
    seed: int,
    again: bool,
    kind: str,
    trusted: bool,
    as_json: bool,
) -> None:
    """Score the submission in FOLDER, and rank it.

    Twins of the track's problems and unseen problems count, drawn for this submission. It also runs on the stored
    problems, and its solutions are stored. Its name belongs to your key: later submissions under it need the same key.
    """
    from opmark.leaderboards.submissions.manifest import load_submission
    from opmark.leaderboards.submissions.sandbox.choice import sandbox
    from opmark.leaderboards.submissions.signature import own_key
    from opmark.leaderboards.submissions.submit import ScoringOptions
    from opmark.leaderboards.submissions.submit import submit as submit_folder

    chosen = sandbox(kind, trusted=trusted, private=(workspace(ctx).root,))
    tracks = _tracks(ctx, names or load_submission(folder).manifest.tracks)
    with score_progress() as show:
        options = ScoringOptions(
            jobs=jobs,
            seed=seed,
            again=again,
            progress=show,
            notice=lambda sentence: click.echo(f"{sentence}.", err=True),
        )
        receipt = submit_folder(folder, tracks, chosen, key=own_key(key_file), options=options)
    if as_json:
        show_json(receipt)
    else:
        _show_receipt(receipt)


def _show_receipt(receipt: "Receipt") -> None:
    rows = []
    for placed in receipt.placed:
        row, splits = placed.row, placed.splits
        scores = (splits.public, splits.validation, splits.twins, splits.hidden)
        rows.append(
            (
                placed.track,
                f"{row.rank} of {placed.entries}",
                f"{row.score:.3f}",
                f"{row.low:.3f} – {row.high:.3f}",
                *(MISSING if score is None else f"{score:.3f}" for score in scores),
                MISSING if splits.drop is None else f"{splits.drop:.0%}",
            )
        )
    show_table(("track", "rank", "score", "95 % interval", "public", "validation", "twins", "hidden", "drop"), rows)
    _show_layers(receipt.layers)
    for placed in receipt.placed:
        if placed.splits.recalls:
            click.echo(
                f"{placed.track}: clearly better on stored instances than on drawn ones; the worst split is its score.",
                err=True,
            )
        for result in placed.row.results:
            if result.reason:
                click.echo(f"{placed.track}, {result.problem}: {result.reason}", err=True)


def _tracks(ctx: click.Context, names: Sequence[str]) -> "list[Track]":
    """The tracks called `names`, or every track that has problems. Raises `NothingSelectedError`."""
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
