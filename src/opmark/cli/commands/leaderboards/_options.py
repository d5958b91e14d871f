"""Options and progress that several leaderboard commands share."""

import contextlib
import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli import completers
from opmark.cli.options import DURATION, together, workspace
from opmark.cli.text.terminal import progress_bar
from opmark.core.errors import ContentError
from opmark.core.shipped import shipped_content
from opmark.core.slug import NAME

if TYPE_CHECKING:
    from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress

track_option = click.option(
    "--track", "track_name", required=True, shell_complete=completers.tracks, help="The track's folder name."
)
planning_budget_option = click.option(
    "--budget", type=DURATION, help="Planning time per problem. Default: the track's own."
)
again_option = click.option("--again", is_flag=True, help="Repeat finished runs.")


class ProblemType(click.Path):
    """The file of a problem, or its name, perhaps TRACK/NAME, in the workspace, else in what came with OpMark."""

    name = "problem"

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path of the problem; a name in several tracks is a usage error, an unknown one stays a path."""
        text = os.fspath(value)
        if ctx is not None and all(map(NAME.accepts, text.split("/", 1))) and not Path(text).exists():
            found = _problems_called(ctx, text)
            if len(found) > 1:
                names = " or ".join(f"{path.parents[1].name}/{text}" for path in found)
                self.fail(f"{text!r} is the name of {len(found)} problems: write {names}", param, ctx)
            if found:
                return found[0]
        return super().convert(value, param, ctx)


def _problems_called(ctx: click.Context, name: str) -> list[Path]:
    from opmark.leaderboards.scoring.answers import SUFFIX
    from opmark.leaderboards.scoring.track import SPLIT_FOLDERS

    try:
        leaderboards = workspace(ctx).leaderboards
    except ContentError:
        leaderboards = shipped_content().leaderboards
    track, _, name = name.rpartition("/")
    files = [f"{folder}/{name}{suffix}" for folder in SPLIT_FOLDERS.values() for suffix in (SUFFIX, ".json")]
    tracks = glob.escape(track) or "*"
    return sorted(path for file in files for path in leaderboards.glob(f"{tracks}/{glob.escape(file)}"))


problem_argument = click.argument("problem_file", metavar="PROBLEM", type=ProblemType())

sandbox_options = together(
    (
        click.option(
            "--sandbox",
            "kind",
            type=click.Choice(["bubblewrap", "none"]),
            default="bubblewrap",
            show_default=True,
            help="The sandbox that the submission runs in.",
        ),
        click.option(
            "--i-trust-this", "trusted", is_flag=True, help="Required by --sandbox none: it can do whatever you can."
        ),
    )
)


def seed_option(use: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--seed`, with the random decisions it determines."""
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=f"The seed of {use}.")


@contextlib.contextmanager
def score_progress() -> "Iterator[Callable[[str, ScoringProgress], None]]":
    """Progress bars for scoring, as a function of a track's label and its progress."""
    with progress_bar(transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(label: str, step: "ScoringProgress") -> None:
            if label not in tasks:
                tasks[label] = bar.add_task(label, total=step.total)
                if step.kept:
                    click.echo(f"{label}: {step.kept} finished runs are kept; --again repeats them.", err=True)
            bar.update(tasks[label], completed=step.done, left_s=step.left_s)

        yield show
