"""Predictors: trained from a release, judged on what they have not seen."""

from math import exp
from pathlib import Path
from typing import Any

import click

from opmark.cli import completers as completing
from opmark.cli.commands.predictors.explain import COMMAND as EXPLAIN
from opmark.cli.commands.predictors.predict import COMMAND as PREDICT
from opmark.cli.commands.predictors.time_by_kind import COMMAND as TIME_BY_KIND
from opmark.cli.commands.predictors.transfer import COMMAND as TRANSFER
from opmark.cli.commands.predictors.transfer import donor_named, donor_option, pace_option, show_curve
from opmark.cli.options import workspace
from opmark.cli.releases import evidence_by_target, release_named, targets_named, warn
from opmark.cli.text.scores import chosen_metrics, show_scores
from opmark.cli.text.terminal import json_option, progress_bar, show_json, show_table
from opmark.core.errors import NothingSelectedError
from opmark.core.units import format_bytes, format_ns

# What a table needs to be judged by at a glance; `--all` adds the rest.
_USUAL = ("lightgbm", "roofline", "nearest", "nn-meter-forest")


@click.group(name="predictors")
def group() -> None:
    """Predictors: latencies of what nobody measured.

    RELEASE is a path, DEVICE/VERSION, or DEVICE for its newest version; without it, the only device's newest.
    """


group.add_command(PREDICT, "predict")
group.add_command(EXPLAIN, "explain")
group.add_command(TRANSFER, "transfer")
group.add_command(TIME_BY_KIND, "time-by-kind")


@group.command(epilog="Example: opmark predictors train --target onnxruntime-cpu-t1")
@click.argument("release", required=False, shell_complete=completing.releases)
@click.option("--target", "targets", multiple=True, help="What to predict; repeatable; default: every target measured.")
@click.option(
    "--estimator",
    default="lightgbm",
    show_default=True,
    shell_complete=completing.estimators,
    help="How to predict: a name of `evaluate --all`.",
)
@json_option
@click.pass_context
def train(ctx: click.Context, release: str | None, targets: tuple[str, ...], estimator: str, as_json: bool) -> None:
    """Train predictors on RELEASE and store them in the workspace."""
    from opmark.predictors.estimators import ESTIMATORS
    from opmark.predictors.inputs.graphs import graphs_of
    from opmark.predictors.model.bundle import save
    from opmark.predictors.model.bundle_paths import bundle_path
    from opmark.predictors.model.training import train as train_target

    ESTIMATORS.load(estimator)
    found = release_named(ctx, release)
    here = workspace(ctx)
    written = []
    with progress_bar(transient=True) as progress:
        for name in progress.track(targets_named(found, targets), description="training"):
            training = [one for one in found.network_measurements(name) if one.role == "training"]
            graphs = graphs_of(training, name, cache=here.cache, warn=warn)
            bundle = train_target(found, name, estimator=estimator, graphs=graphs)
            folder = bundle_path(here, found.device, found.version, name)
            save(bundle, folder)
            written.append(_described(folder))
    if as_json:
        show_json(written)
        return
    for one in written:
        _show_bundle(one)


@group.command(epilog="Example: opmark predictors evaluate --split networks-unseen")
@click.argument("release", required=False, shell_complete=completing.releases)
@click.option("--target", "targets", multiple=True, help="Which target; repeatable; default: every target measured.")
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    shell_complete=completing.estimators,
    help="An estimator; repeatable; default: ours and three more.",
)
@click.option("--all", "everything", is_flag=True, help="Every estimator there is.")
@click.option("--split", "splits", multiple=True, help="A split; repeatable; default: every one.")
@click.option(
    "--metrics", default="", help="What the table shows, separated by commas: rmse,acc15. Default: the usual."
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with pictures, the learning curve among them, to this HTML file.",
)
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
    metrics: str,
    page: Path | None,
    as_json: bool,
) -> None:
    """Judge estimators on rows of RELEASE that they have not seen.

    Beside the errors stands the noise floor, that of measuring again. Networks nobody sampled from (`networks-unseen`)
    are judged against the measured network, against the sum of its measured kernels (`kernel-sum-…`), and that sum
    against the network (`composition-…`).
    """
    from opmark.core.files import write_text
    from opmark.core.registry import unknown_name
    from opmark.predictors.estimators import ESTIMATORS
    from opmark.predictors.judging.learning_curve import learning_curve
    from opmark.predictors.judging.scores import evaluate as judge
    from opmark.predictors.judging.splits import SPLIT_NAMES

    shown = chosen_metrics(metrics)
    chosen = ESTIMATORS.names() if everything else estimators or _USUAL
    wanted = splits or SPLIT_NAMES
    for name in chosen:
        ESTIMATORS.load(name)
    for name in wanted:
        if name not in SPLIT_NAMES:
            raise unknown_name("split", name, SPLIT_NAMES)
    evaluations, curves = [], {}
    with progress_bar(transient=True) as progress:
        found = evidence_by_target(ctx, release, targets)
        task = progress.add_task("evaluating", total=len(found) * len(chosen) * len(wanted))

        def step(estimator: str, split: str) -> None:
            progress.update(task, advance=1, description=f"{estimator}, {split}")

        for name, evidence in found.items():
            evaluations.append(judge(evidence, estimators=chosen, splits=wanted, progress=step))
            if page is not None:
                curves[name] = learning_curve(evidence, progress=step)
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
    # last: where the page cannot be written, minutes of judging are not lost
    if page is not None:
        from opmark.studies.predictor_pages.evaluation import evaluation_page

        ours = "lightgbm" if "lightgbm" in chosen else chosen[0]
        write_text(page, evaluation_page(release_named(ctx, release).name, evaluations, curves, ours=ours))
        click.echo(f"{page}", err=True)


@group.command(epilog="Example: opmark predictors curve --page curve.html")
@click.argument("release", required=False, shell_complete=completing.releases)
@click.option("--target", "targets", multiple=True, help="Which target; repeatable; default: every target measured.")
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    shell_complete=completing.estimators,
    help="An estimator; repeatable; default: ours and nn-Meter's.",
)
@donor_option
@pace_option
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves to this HTML file.")
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
    """Show how errors fall with the kernels learned from.

    Kernels of RELEASE whose shape groups are unseen judge. With --donor, `transfer` is the curve of what validation
    chooses between another target's predictor and doing without.
    """
    from opmark.core.files import write_text
    from opmark.predictors.judging.learning_curve import learning_curve, with_donor

    chosen = estimators or ("lightgbm", "nn-meter-forest")
    known = [donor_named(workspace(ctx), name) for name in donors]
    found = {}
    with progress_bar(transient=True) as progress:
        task = progress.add_task("learning", total=None)
        for name, evidence in evidence_by_target(ctx, release, targets, networks=False).items():
            found[name] = learning_curve(
                evidence,
                estimators=chosen,
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
        from opmark.studies.predictor_pages.learning import learning_page

        write_text(page, learning_page(release_named(ctx, release).name, found))
        click.echo(f"{page}", err=True)


@group.command(name="list", epilog="Example: opmark predictors list")
@json_option
@click.pass_context
def list_bundles(ctx: click.Context, as_json: bool) -> None:
    """List the predictors of this workspace."""
    from opmark.predictors.model.bundle import read_manifest
    from opmark.predictors.model.bundle_paths import stored_bundles

    here = workspace(ctx)
    found = [(one, read_manifest(one.path)) for one in stored_bundles(here)]
    if as_json:
        show_json(
            [
                {
                    "name": one.name,
                    "path": str(one.path),
                    "target": manifest.target.name,
                    "estimator": manifest.estimator,
                    "kinds": len(manifest.kinds),
                    "rows": sum(entry.rows for entry in manifest.kinds.values()),
                }
                for one, manifest in found
            ]
        )
        return
    if not found:
        click.echo(f"No predictor in {here.predictors} yet; opmark predictors train.", err=True)
        return
    rows = [
        (one.name, manifest.estimator, str(len(manifest.kinds)), f"{sum(e.rows for e in manifest.kinds.values()):,}")
        for one, manifest in found
    ]
    show_table(("predictor", "estimator", "kinds", "rows"), rows, left=2)


@group.command(epilog="Example: opmark predictors show onnxruntime-cpu-t1")
@click.argument("name")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show a predictor.

    NAME is a folder, DEVICE/VERSION/TARGET, or a target for its newest.
    """
    from opmark.predictors.model.bundle_paths import path_of

    described = _described(path_of(workspace(ctx), name) if not Path(name).is_dir() else Path(name))
    if as_json:
        show_json(described)
        return
    _show_bundle(described)


def _described(folder: Path) -> dict[str, Any]:
    from opmark.predictors.model.bundle import load

    bundle = load(folder)
    manifest = bundle.manifest
    return {
        "path": str(folder),
        "target": str(manifest.target),
        "version": manifest.target.version,
        "estimator": manifest.estimator,
        "release": manifest.origin,
        "id": manifest.id,
        "transfer": manifest.transfer,
        "size_bytes": sum(path.stat().st_size for path in folder.iterdir()),
        "constants": manifest.constants,
        "note": manifest.constants.note,
        "kinds": {
            kind: {"rows": entry.rows, "metrics": entry.metrics, "errors": entry.errors}
            for kind, entry in manifest.kinds.items()
        },
    }


def _show_bundle(one: dict[str, Any]) -> None:
    release, constants = one["release"], one["constants"]
    click.echo(f"{one['target']}  {one['estimator']} on {release.device}/{release.version}, id {one['id']}")
    click.echo(f"{one['path']}  {format_bytes(one['size_bytes'])}")
    made = one["transfer"]
    if made is not None:
        click.echo(f"{made.method} by validation on {made.samples:,} samples; donor: {made.donor or 'none'}")
    rows = [
        (
            kind,
            f"{entry['rows']:,}",
            f"{entry['errors'].groups:,}",
            f"{entry['metrics']['median']:.1%}" if entry["metrics"] else "–",
            f"{entry['metrics']['acc10']:.0%}" if entry["metrics"] else "–",
            f"÷× {exp(entry['errors'].half_width):.2f}",
        )
        for kind, entry in one["kinds"].items()
    ]
    show_table(("kind", "rows", "groups", "median error", "within ±10 %", "90 % interval"), rows)
    gaps = f"gap {format_ns(constants.gap_ns)}, {format_ns(constants.matrix_gap_ns)} more before matrix work"
    click.echo(f"{one['note']}; {gaps}", err=True)


COMMAND = group
