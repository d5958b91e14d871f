"""`opmark provision`: which devices to rent for a network, and how many of each type."""

import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli import completers
from opmark.cli.options import (
    DURATION,
    FILE,
    POSITIVE_DURATION,
    FiniteRange,
    chosen_sizes,
    json_option,
    missing_option,
    predictors_workspace,
    together,
)
from opmark.cli.options import SIZES as SIZE_OPTIONS
from opmark.cli.text.terminal import (
    MISSING,
    long_step,
    map_progress,
    progress_bar,
    show_json,
    show_note,
    show_table,
    show_warning,
)
from opmark.core.units import format_bytes, format_duration, format_ns

if TYPE_CHECKING:
    from opmark.leaderboards.provisioning.answer import Answer
    from opmark.leaderboards.provisioning.exploration import Exploration, ExplorationProgress
    from opmark.leaderboards.provisioning.recommendation import Recommendation

_PER_HOUR = re.compile(r"\$?\s*(?P<value>\d+(?:\.\d+)?)\s*(?:/\s*h)?", re.ASCII)
# Draws of the predictors' errors where somebody does not want to wait.
FEW_DRAWS = 20
FIRST_ANSWER = "first answer"


class PerHourType(click.ParamType[float]):
    """A price per hour such as `6/h`, `$6/h` or `6`."""

    name = "money/h"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the price; anything else is a usage error."""
        match = _PER_HOUR.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{str(value)[:40]!r} is not a price per hour; write it like 6/h", param, ctx)
        price = float(match["value"])
        if not 0 < price < math.inf:
            self.fail(f"{str(value)[:40]!r} is not a positive, finite price per hour; write it like 6/h", param, ctx)
        return price


_goal_options = together(
    (
        click.option("--at-most", type=POSITIVE_DURATION, help="The latency limit of one batch or step, such as 40ms."),
        click.option(
            "--samples-per-second", type=FiniteRange(min=0, min_open=True), help="The throughput that is needed."
        ),
        click.option("--budget", type=PerHourType(), help="The price limit per hour, such as 6/h."),
    )
)


@click.command(epilog="Example: opmark provision vgg-16 --catalogue cloud-gpus --at-most 20ms")
@click.argument("model", shell_complete=completers.models)
@click.option(
    "--catalogue", "catalogue_name", required=True, help="The name or the YAML file of the devices that can be rented."
)
@_goal_options
@together(SIZE_OPTIONS)
@click.option(
    "--devices-at-most", type=click.IntRange(min=1, max=64), default=8, show_default=True, help="Devices in all."
)
@click.option(
    "--planning-time",
    type=DURATION,
    default="30s",
    show_default=True,
    help="The time for the search. Predicting before and judging after it take some seconds more.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the search.")
@missing_option
@click.option("-o", "--output", type=FILE, help="Write a page with the front and the schedule to this file.")
@json_option
@click.pass_context
def provision(
    ctx: click.Context,
    *,
    model: str,
    catalogue_name: str,
    at_most: float | None,
    samples_per_second: float | None,
    budget: float | None,
    dimensions: tuple[str, ...],
    batch: int | None,
    size: int | None,
    devices_at_most: int,
    planning_time: float,
    seed: int,
    missing: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Recommend which devices to rent for MODEL.

    Their types may be unequal. MODEL is an .onnx file, a .pt2 file, or a name listed by `opmark models list`, such as
    `resnet-50@training`. The goal is a latency, a throughput or a price per hour; without one, the cheapest sample is
    recommended. Ctrl-C ends the search and prints the best answer so far.
    """
    from opmark.core.files import write_text
    from opmark.leaderboards.making.instances import Sources
    from opmark.leaderboards.provisioning.catalogue import load_catalogue
    from opmark.leaderboards.provisioning.exploration import Exploration
    from opmark.leaderboards.provisioning.goal import Goal
    from opmark.leaderboards.provisioning.layers_job import any_job

    goal = Goal(
        latency_at_most_ns=None if at_most is None else at_most * 1e9,
        samples_per_second=samples_per_second,
        price_per_hour_at_most=budget,
    )
    workspace = predictors_workspace(ctx)
    catalogue = load_catalogue(workspace.leaderboards, catalogue_name)
    sizes = chosen_sizes(dimensions, batch, size)
    _compile_search(wait=False)
    sources = Sources(workspace=workspace, missing=missing)
    with long_step(f"predicting the kernels of {model} on {len(catalogue.types)} device types") as tell:
        job = any_job(model, catalogue, sources, dimensions=sizes, in_a_pipeline=goal.in_a_pipeline, tell=tell)
    for kind, reason in job.left_out.items():
        show_warning(f"{kind} is left out: {reason}")
    _compile_search(wait=True)
    exploration = Exploration(job, goal, devices_at_most=devices_at_most, seed=seed)
    begun = time.monotonic()
    _explore(exploration, planning_time)
    found = _recommended(exploration, time.monotonic() - begun)
    if as_json:
        show_json(found.document())
    else:
        _show(found)
    if output is not None:
        from opmark.leaderboards.provisioning.page import provisioning_page

        write_text(output, provisioning_page(found))
        if not as_json:
            click.echo(f"Page: {output}")


def _compile_search(*, wait: bool) -> None:
    """Begin to compile the search where that was never done, or `wait` for it: no planning time pays for it."""
    from opmark.leaderboards.problem.compile_cache import runs_uncompiled
    from opmark.leaderboards.search.compilation import compile_in_background, compile_once, is_compiled

    if runs_uncompiled() or is_compiled():
        return
    if not wait:
        compile_in_background()
        return
    with long_step("compiling the search, once per version"):
        compile_once()


def _explore(exploration: "Exploration", planned_s: float) -> None:
    """Search with a progress bar; Ctrl-C ends it, and what was found until then counts.

    Where no bar can be drawn, a line tells the first answer that meets the goal.
    """
    goal, currency = exploration.goal, exploration.job.catalogue.currency
    with progress_bar(transient=True) as bar:
        task = bar.add_task("fleets", total=None)
        told = bar.console.is_terminal

        def show(now: "ExplorationProgress") -> None:
            nonlocal told
            if not told and now.best is not None and goal.shortfall(now.best) <= 1.0:
                told = True
                show_note(f"{FIRST_ANSWER}: {now.best.fleet.title} at {goal.value_words(now.best, currency)}")
            best = "no answer yet" if now.best is None else f"best so far: {now.best.fleet.title}"
            bar.update(
                task, completed=now.looked_at + now.ruled_out, description=best, left_s=now.planned_s - now.spent_s
            )

        try:
            exploration.run(planned_s, progress=show)
        except KeyboardInterrupt:
            if exploration.best() is None:
                raise
            show_note("stopped early; this is the best answer so far")


def _recommended(exploration: "Exploration", seconds: float) -> "Recommendation":
    """Judge what was found over draws of the predictors' errors; after Ctrl-C over a few of them."""
    from opmark.leaderboards.provisioning.recommendation import recommend

    try:
        with map_progress("draws of the errors") as show:
            return recommend(exploration, seconds, progress=show)
    except KeyboardInterrupt:
        show_note(f"stopped early; the answers are judged over {FEW_DRAWS} draws only")
        return recommend(exploration, seconds, draws=FEW_DRAWS)


def _show(found: "Recommendation") -> None:
    from opmark.leaderboards.provisioning.recommendation import ROLE_NAMES
    from opmark.leaderboards.provisioning.verdict import sentences

    currency = found.job.catalogue.currency
    rows = [(label, *_cells(found, found.roles[role])) for role, label in ROLE_NAMES.items()]
    columns = ("", "devices", "latency", "90 % interval", "samples/s", f"{currency}/h", f"{currency} per million")
    show_table(columns, rows, left=2)
    for sentence in sentences(found):
        click.echo(sentence)
    _show_work(found)
    click.echo(f"Searched for {format_duration(found.seconds)} for {found.goal.words}.")


def _cells(found: "Recommendation", answer: "Answer | None") -> tuple[str, ...]:
    if answer is None:
        return ("none fits", *[MISSING] * 5)
    low, high = (format_ns(value) for value in found.doubt.interval_ns(answer))
    mark = "" if found.goal.shortfall(answer) <= 1.0 else " (misses the goal)"
    return (
        f"{answer.fleet.title}{mark}",
        format_ns(answer.latency_ns),
        f"{low} to {high}",
        f"{answer.samples_per_second:,.4g}",
        f"{answer.price_per_hour:,.4g}",
        f"{answer.cost_per_million:,.4g}",
    )


def _show_work(found: "Recommendation") -> None:
    """The part of each rented device; nothing to say of a single one."""
    from opmark.leaderboards.provisioning.device_work import work_of_devices

    if found.recommended.fleet.size == 1:
        return
    rows = [
        (
            one.device,
            str(one.units),
            f"{one.busy:.0%}",
            f"{format_bytes(one.peak_bytes)} of {format_bytes(one.memory_bytes)}",
            ", ".join(one.in_turn_with) or MISSING,
        )
        for one in work_of_devices(found.job, found.recommended, in_a_pipeline=found.goal.in_a_pipeline)
    ]
    show_table(("device", "units", "busy", "peak memory", "in turn with"), rows, left=1)


COMMAND = provision
