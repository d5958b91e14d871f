"""Options and progress that several leaderboard commands share."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from opmark.cli import completers
from opmark.cli.options import DURATION, together
from opmark.cli.text.terminal import progress_bar

if TYPE_CHECKING:
    from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress

track_option = click.option(
    "--track", "track_name", required=True, shell_complete=completers.tracks, help="The track's folder name."
)
planning_budget_option = click.option(
    "--budget", type=DURATION, help="Planning time per problem. Default: the track's own."
)
again_option = click.option("--again", is_flag=True, help="Repeat finished runs.")

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
