"""`opmark predictors evaluate`, `curve` and `time-by-kind`: the accuracy of predictors."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli import completers
from opmark.cli.commands.predictors._options import (
    curve_page_option,
    donor_option,
    pace_option,
    release_argument,
    targets_option,
)
from opmark.cli.commands.predictors._sealed import show_sealed
from opmark.cli.lookup import donors_by_target, donors_named, evidence_by_target, release_named
from opmark.cli.options import FILE, FOLDER, cluster_option, json_option, on_cluster, workspace
from opmark.cli.text.scores import chosen_metrics, show_curve, show_scores
from opmark.cli.text.terminal import progress_bar, show_json, show_note, show_table, show_warning
from opmark.core.errors import NothingSelectedError
from opmark.core.units import counted, format_ns

if TYPE_CHECKING:
    from rich.progress import TaskID

    from opmark.core.parallel.task_map import MapProgress
    from opmark.predictors.judging.evidence import Evidence
    from opmark.predictors.judging.learning_curve import LearningPoint
    from opmark.predictors.judging.scores import TargetScores
    from opmark.predictors.judging.time_by_kind import TimeByKind

# The estimators that a table compares at a glance; `--all` adds the others.
_USUAL = ("lightgbm", "roofline", "nearest", "nn-meter-forest")
_CURVE = ("lightgbm", "nn-meter-forest")
_estimators_option = click.option(
    "--estimator",
    "estimators",
    multiple=True,
    shell_complete=completers.estimators,
    help=f"An estimator; repeatable. Default: {', '.join(_USUAL)}.",
)


@click.command(epilog="Example: opmark predictors evaluate --split networks-unseen")
@release_argument
@targets_option
@_estimators_option
@click.option("--all", "everything", is_flag=True, help="Every estimator.")
@click.option("--split", "splits", multiple=True, help="A split; repeatable. Default: every split.")
@donor_option
@click.option("--sealed", is_flag=True, help="Judge the newest predictor, as it is, on the sealed networks of RELEASE.")
@click.option(
    "--metrics", default="", help="The metrics in the table, separated by commas: rmse,acc15. Default: the usual ones."
)
@cluster_option
@click.option("--page", type=FILE, help="Write an HTML page with pictures and learning curves to this file.")
@json_option
@click.pass_context
def evaluate(
    ctx: click.Context,
    *,
    release: str | None,
    targets: tuple[str, ...],
    estimators: tuple[str, ...],
    everything: bool,
    splits: tuple[str, ...],
    donors: tuple[str, ...],
    sealed: bool,
    metrics: str,
    cluster: str | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Judge estimators on rows of RELEASE that they have not seen.

    The noise floor beside the errors is the difference between two measurements of the same kernel. Networks that no
    sample came from (`networks-unseen`) are compared with the measured network; also the prediction with the sum of
    measured kernels (`kernel-sum-…`), and that sum with the network (`composition-…`). With --cluster its workers fit
    the estimators. With --donor, one for each target, the estimator `transferred` corrects another device's predictor,
    which may know the judged kernels from its own device. Finished parts are kept in the workspace's cache: after an
    interruption, the same command goes on. With --sealed nothing is trained: every sealed network is reported as it
    comes, and a family that predictors were trained or compared on is refused.
    """
    if sealed:
        mixed = bool(splits or estimators or donors or everything or cluster or page or metrics)
        show_sealed(ctx, release, targets, as_json=as_json, mixed=mixed)
        return
    shown = chosen_metrics(metrics)
    chosen = _chosen(estimators, donors, everything=everything)
    evaluations, curves = _evaluations(
        ctx, release, targets, chosen, splits, donors=donors, with_curves=page is not None, cluster=cluster
    )
    scores = [score for one in evaluations for score in one.scores]
    if not scores:
        raise NothingSelectedError(
            "the release has no rows for such a split",
            where=str(release or "the newest release"),
            hint="choose another --split; `opmark bench models` measures networks",
        )
    if as_json:
        show_json(scores)
    else:
        show_scores(scores, shown)
    for one in evaluations:
        if one.left_out:
            show_warning(_left_out_text(one))
        for family, others in one.relatives.items():
            show_note(f"{one.target}: the unseen family {family} has a relative in training: {', '.join(others)}")
    # The page is written last: if that fails, minutes of judging are not lost.
    if page is not None:
        from opmark.core.files import write_text
        from opmark.studies.predictor_pages.evaluation import evaluation_page

        ours = "lightgbm" if "lightgbm" in chosen else chosen[0]
        write_text(page, evaluation_page(release_named(ctx, release).name, evaluations, curves, ours=ours))
        click.echo(str(page), err=True)


def _chosen(estimators: tuple[str, ...], donors: tuple[str, ...], *, everything: bool) -> tuple[str, ...]:
    """The estimators to judge; donors add the one that corrects them."""
    from opmark.predictors.estimators import ESTIMATORS
    from opmark.predictors.model.adapted_learner import TRANSFERRED

    chosen = tuple(ESTIMATORS.names() if everything else estimators or _USUAL)
    return tuple(dict.fromkeys((*chosen, TRANSFERRED))) if donors else chosen


def _with_donors(ctx: click.Context, found: "dict[str, Evidence]", donors: tuple[str, ...]) -> "dict[str, Evidence]":
    """Give each target's evidence its donor. Raises `UsageError` where there is not one for each."""
    known = donors_by_target(workspace(ctx), donors, list(found))
    return {name: replace(one, donor=known[name].model.bundle) if known else one for name, one in found.items()}


def _left_out_text(one: "TargetScores") -> str:
    return (
        f"{one.target}: {counted(len(one.left_out), 'measured network')} without a graph here, so neither judged nor "
        f"fitted on: {', '.join(one.left_out)} (the notes above say why; networks of transformers need "
        '`pip install "opmark[models]"`)'
    )


def _evaluations(
    ctx: click.Context,
    release: str | None,
    targets: tuple[str, ...],
    estimators: tuple[str, ...],
    splits: tuple[str, ...],
    *,
    donors: tuple[str, ...],
    with_curves: bool,
    cluster: str | None,
) -> "tuple[list[TargetScores], dict[str, list[LearningPoint]]]":
    """The evaluation of each target and, `with_curves`, its learning curve. Raises `UnknownNameError`."""
    from opmark.core.registry import unknown_name
    from opmark.predictors.judging.finished_parts import FinishedParts
    from opmark.predictors.judging.learning_curve import learning_curve
    from opmark.predictors.judging.scores import evaluate as judge
    from opmark.predictors.judging.splits import SPLIT_NAMES

    wanted = splits or SPLIT_NAMES
    for name in wanted:
        if name not in SPLIT_NAMES:
            raise unknown_name("split", name, SPLIT_NAMES)
    evaluations, curves = [], {}
    with on_cluster(cluster) as place, progress_bar(transient=True) as progress:
        reading = progress.add_task("reading the release", total=None)
        found = _with_donors(ctx, evidence_by_target(ctx, release, targets), donors)
        for estimator, evidence in product(estimators, found.values()):
            evidence.learner(estimator)
        progress.remove_task(reading)
        for number, (name, evidence) in enumerate(found.items(), start=1):
            doing = name if len(found) == 1 else f"{name}, target {number} of {len(found)}"
            task = progress.add_task(doing, total=None)

            def show(now: "MapProgress", task: "TaskID" = task) -> None:
                progress.update(task, completed=now.done, total=now.total, left_s=now.left_s)

            finished = FinishedParts(workspace(ctx).cache / "evaluations", evidence)
            evaluations.append(
                judge(
                    evidence,
                    estimators=estimators,
                    splits=wanted,
                    progress=show,
                    place=place,
                    finished=finished,
                    notice=show_note,
                )
            )
            if with_curves:
                task = progress.add_task("learning curve", total=None)

                def step(estimator: str, what: str, task: "TaskID" = task) -> None:
                    progress.update(task, description=f"{estimator}, {what}")

                curves[name] = learning_curve(evidence, progress=step)
                progress.remove_task(task)
    return evaluations, curves


@click.command(epilog="Example: opmark predictors curve --page curve.html")
@release_argument
@targets_option
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    shell_complete=completers.estimators,
    help=f"An estimator; repeatable. Default: {', '.join(_CURVE)}.",
)
@donor_option
@pace_option
@curve_page_option
@json_option
@click.pass_context
def curve(
    ctx: click.Context,
    *,
    release: str | None,
    targets: tuple[str, ...],
    estimators: tuple[str, ...],
    donors: tuple[str, ...],
    kernels_per_second: float,
    page: Path | None,
    as_json: bool,
) -> None:
    """Show how errors fall with more measured kernels.

    Kernels of RELEASE whose shape groups are unseen judge. With --donor, the curve `transfer` shows the method that
    validation chooses: a transfer from another target's predictor, or learning without it.
    """
    from opmark.predictors.judging.learning_curve import learning_curve, with_donor

    known = donors_named(workspace(ctx), donors)
    found = {}
    with progress_bar(transient=True) as progress:
        task = progress.add_task("learning", total=None)
        for name, evidence in evidence_by_target(ctx, release, targets, networks=False).items():
            found[name] = learning_curve(
                evidence,
                estimators=estimators or _CURVE,
                kernels_per_second=kernels_per_second,
                progress=lambda estimator, what: progress.update(task, description=f"{estimator}, {what}"),
            )
            if known:
                found[name] += with_donor(evidence, known, kernels_per_second=kernels_per_second)
    if as_json:
        show_json(found)
    else:
        for name, points in found.items():
            show_curve(name, points)
    if page is not None:
        from opmark.core.files import write_text
        from opmark.studies.predictor_pages.curves import learning_page

        write_text(page, learning_page(release_named(ctx, release).name, found))
        click.echo(str(page), err=True)


@click.command(name="time-by-kind", epilog="Example: opmark predictors time-by-kind --target onnxruntime-cpu-t1")
@release_argument
@targets_option
@click.option(
    "--bundle",
    type=FOLDER,
    help="The predictor that divides a network's time. Default: the newest of the target in this workspace.",
)
@json_option
@click.pass_context
def time_by_kind(
    ctx: click.Context, *, release: str | None, targets: tuple[str, ...], bundle: Path | None, as_json: bool
) -> None:
    """Show which kinds the time of RELEASE's networks goes to.

    A predictor divides each network's time among its kernels; a network's weight is its measured time. Kernels without
    a kind of their own count as `bytes-moved`, which should hold at most 1 % of the time.
    """
    from opmark.predictors.judging.time_by_kind import time_by_kind as divided
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import find_bundle

    found = []
    for name, evidence in evidence_by_target(ctx, release, targets).items():
        folder = bundle or find_bundle(workspace(ctx), name, device=evidence.target.device)
        found.append(divided(evidence, load(folder, target_name=name)))
    if as_json:
        show_json(
            [
                {
                    "target": one.target,
                    "networks": one.networks,
                    "measured_ns": one.measured_ns,
                    "bytes_moved": one.bytes_moved,
                    "met": one.met,
                    "worst": dict(zip(("network", "bytes_moved"), one.worst, strict=True)),
                    "by_kind": dict(one.by_kind),
                    "between": one.between,
                }
                for one in found
            ]
        )
        return
    for one in found:
        _show_time_by_kind(one)


def _show_time_by_kind(one: "TimeByKind") -> None:
    rows = [(kind, f"{share:.2%}") for kind, share in one.by_kind]
    rows.append(("between kernels", f"{one.between:.2%}"))
    show_table(("kind", "share of the time"), rows, title=one.target)
    most = f"; most in {one.worst[0]}, {one.worst[1]:.2%}" if one.bytes_moved else ""
    click.echo(
        f"{one.target}: bytes-moved holds {one.bytes_moved:.2%} of the {format_ns(one.measured_ns)} of "
        f"{counted(one.networks, 'measured network')} (target: at most 1 %, {'met' if one.met else 'missed'}){most}"
    )
