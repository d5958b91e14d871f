"""Options of `opmark leaderboards make-problem` that say what the problem asks."""

from collections.abc import Callable
from typing import Any

import click

from opmark.cli.options import DURATION

OBJECTIVES = ("latency", "throughput", "cost", "serving")


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Objective, micro-batches and arrivals, handed to the command as keywords."""
    for option in reversed(
        (
            click.option(
                "--objective",
                type=click.Choice(OBJECTIVES),
                default="latency",
                show_default=True,
                help="What a placement is judged by.",
            ),
            click.option(
                "--micro-batches", type=click.IntRange(min=0), default=0, help="How many make up a training step."
            ),
            click.option("--arrivals", default="", help="How requests of the objective serving come: poisson, bursty."),
            click.option(
                "--rate",
                type=click.FloatRange(min=0, min_open=True),
                help="Requests per s; default: 70 % of what the best single device can serve.",
            ),
            click.option(
                "--requests", type=click.IntRange(min=1), default=100, show_default=True, help="How many requests."
            ),
            click.option(
                "--target", type=DURATION, help="When an answer is late; default: after three latencies there."
            ),
            click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For the arrivals."),
        )
    ):
        command = option(command)
    return command
