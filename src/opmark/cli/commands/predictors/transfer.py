"""Transfer a predictor to another target, and show when that is worth it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.options import workspace
from opmark.cli.text.terminal import counted, json_option, progress_bar, show_json, show_table
from opmark.core.errors import UsageError

if TYPE_CHECKING:
    from opmark.core.workspace import Workspace
    from opmark.datasets.release.release import Release
    from opmark.predictors.judging.learning_curve import CurvePoint
    from opmark.predictors.transfer.curve import Donor, TransferPoint


donor_option = click.option(
    "--donor",
    "donors",
    multiple=True,
    help="RELEASE:TARGET, a predictor's folder or DEVICE/VERSION/TARGET; repeatable.",
)
pace_option = click.option(
    "--kernels-per-second",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="How many kernels the device measures a second, for device minutes.",
)


@click.command(name="transfer", epilog="Example: opmark predictors transfer DEVICE:onnxruntime-cpu-t1 --samples 50")
@click.argument("receiver")
@donor_option
@click.option(
    "--samples", multiple=True, type=click.IntRange(min=5), help="How many kernels to learn from; repeatable."
)
@pace_option
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves to this HTML file.")
@click.option(
    "--store",
    is_flag=True,
    help="Keep a predictor of RECEIVER, from --samples of its kernels or, without, from all; no curve.",
)
@click.option(
    "--to", "folder", type=click.Path(path_type=Path, file_okay=False), help="Keep it in this folder; implies --store."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    receiver: str,
    donors: tuple[str, ...],
    samples: tuple[int, ...],
    kernels_per_second: float,
    page: Path | None,
    store: bool,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Learn a target from few samples and another's predictor.

    RECEIVER is RELEASE:TARGET; donors are every other target there is unless some are named. The donor is the one whose
    utilisation diverges least on a probe of the samples; validation on the samples chooses between its residual,
    simpler corrections and learning from scratch. Kernels of unseen shape groups judge. With --store, what validation
    chooses is kept as a predictor that `opmark predict` finds.
    """
    if store or folder is not None:
        _store(ctx, receiver, donors, samples, page=page, folder=folder, as_json=as_json)
        return
    _curve(ctx, receiver, donors, samples, kernels_per_second=kernels_per_second, page=page, as_json=as_json)


def _curve(
    ctx: click.Context,
    receiver: str,
    donors: tuple[str, ...],
    samples: tuple[int, ...],
    *,
    kernels_per_second: float,
    page: Path | None,
    as_json: bool,
) -> None:
    from opmark.core.files import write_text
    from opmark.predictors.inputs.hardware import Hardware, hardware_of
    from opmark.predictors.model.device_time import assumption
    from opmark.predictors.transfer.curve import SAMPLES, transfer_curve

    here = workspace(ctx)
    release, target = _found(here, receiver)
    environments = release.manifest.environments
    with progress_bar(transient=True) as progress:
        task = progress.add_task("donors", total=None)
        points = transfer_curve(
            release.measurements(target),
            _donors(here, donors, but=f"{release.name}:{target}"),
            hardware=hardware_of(environments[0].checked) if environments else Hardware(),
            samples=samples or SAMPLES,
            kernels_per_second=kernels_per_second,
            progress=lambda what: progress.update(task, description=what),
        )
    if as_json:
        show_json(points)
    else:
        _show(f"{release.name}:{target}", points)
        click.echo(assumption(kernels_per_second), err=True)
    if page is not None:
        from opmark.studies.predictor_pages.transfer import transfer_page

        write_text(page, transfer_page(f"{release.name}:{target}", points))
        click.echo(str(page), err=True)


def _store(
    ctx: click.Context,
    receiver: str,
    donors: tuple[str, ...],
    samples: tuple[int, ...],
    *,
    page: Path | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    from opmark.predictors.inputs.graphs import graphs_of
    from opmark.predictors.model.bundle import load, save
    from opmark.predictors.model.bundle_paths import bundle_path, refuse_to_replace
    from opmark.predictors.transfer.adapted_bundle import transfer_release

    if len(samples) > 1 or page is not None:
        raise UsageError("one predictor is kept, and no curve drawn", hint="name --samples once and leave --page out")
    here = workspace(ctx)
    release, target = _found(here, receiver)
    place = folder or bundle_path(here, release.device, release.version, target)
    if folder is None:
        refuse_to_replace(place)
    with progress_bar(transient=True) as progress:
        progress.add_task("learning", total=None)
        known = _donors(here, donors, but=f"{release.name}:{target}")
        training = [one for one in release.network_measurements(target) if one.role == "training"]
        graphs = graphs_of(training, target, cache=here.cache, warn=lambda text: click.echo(f"note: {text}", err=True))
        bundle = transfer_release(release, target, known, samples=samples[0] if samples else None, graphs=graphs)
        save(bundle, place)
    manifest = load(place).manifest
    if as_json:
        show_json(
            {"path": str(place), "target": str(manifest.target), "id": manifest.id, "transfer": manifest.transfer}
        )
        return
    made = manifest.transfer
    assert made is not None
    click.echo(f"{place}")
    click.echo(f"{manifest.target}: {made.method} on {counted(made.samples, 'sample')}; donor: {made.donor or 'none'}")
    tried = sorted(made.validation.items(), key=lambda item: item[1])
    rows = [(name, f"{error:.1%}", "chosen" if name == made.method else "") for name, error in tried]
    show_table(("method", "validation", ""), rows)


def _found(here: "Workspace", name: str) -> "tuple[Release, str]":
    from opmark.datasets.release.finding import find

    release_name, colon, target = name.rpartition(":")
    if not colon:
        raise UsageError(f"{name!r} names no target", hint="write it like DEVICE/VERSION:onnxruntime-cpu-t1")
    release = find(release_name, here.datasets)
    return release, release.target(target).name


def _everything(here: "Workspace") -> list[str]:
    """The newest release of every device, target by target."""
    from opmark.datasets.release.finding import find, names

    newest = {name.partition("/")[0]: name for name in names(here.datasets)}
    return [f"{name}:{target.name}" for name in newest.values() for target in find(name, here.datasets).targets]


def _donors(here: "Workspace", names: tuple[str, ...], *, but: str) -> "list[Donor]":
    return [donor_named(here, name) for name in names or [name for name in _everything(here) if name != but]]


def donor_named(here: "Workspace", name: str) -> "Donor":
    """A stored predictor by its folder or name, or that of a release's target: the stored one, else one trained now."""
    from opmark.predictors.model.bundle import FILE, load
    from opmark.predictors.model.bundle_paths import bundle_path, stored_bundles
    from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
    from opmark.predictors.model.training import train
    from opmark.predictors.transfer.curve import Donor

    stored = {one.name: one.path for one in stored_bundles(here)}
    folder = Path(name) if (Path(name) / FILE).is_file() else stored.get(name)
    if folder is None:
        release, target = _found(here, name)
        place = bundle_path(here, release.device, release.version, target)
        if not place.is_dir():
            return Donor(name=f"{release.name}:{target}", model=CostModel(train(release, target), missing=BYTES_MOVED))
        folder = place
    bundle = load(folder)
    origin = bundle.manifest.origin
    named = f"{origin.device}/{origin.version}:{bundle.target.name}"
    return Donor(name=named, model=CostModel(bundle, missing=BYTES_MOVED))


def show_curve(target: str, points: "list[CurvePoint]") -> None:
    """A learning curve as a table, and when nineteen kernels in twenty are within ±10 %."""
    from opmark.predictors.judging.learning_curve import WANTED_ACC10, reached
    from opmark.predictors.model.device_time import assumption

    rows = [
        (
            one.estimator,
            f"{one.rows:,}",
            f"{one.minutes:.1f}",
            f"{one.median:.1%}",
            f"{one.mape:.1%}",
            f"{one.acc10:.1%}",
            f"{one.n:,}",
        )
        for one in points
    ]
    show_table(("estimator", "kernels", "minutes", "median", "mape", "acc10", "n"), rows, title=target)
    for name, point in reached(points).items():
        best = max((one for one in points if one.estimator == name), key=lambda one: one.acc10)
        said = (
            f"from {point.rows:,} kernels on, {point.minutes:.1f} minutes"
            if point
            else f"not reached: {best.acc10:.1%} with {best.rows:,} kernels, {best.minutes:.1f} minutes"
        )
        click.echo(f"{name}: {WANTED_ACC10:.0%} of kernels within ±10 % {said}")
    if points:
        click.echo(assumption(points[0].kernels_per_second), err=True)


def _show(receiver: str, points: "list[TransferPoint]") -> None:
    rows = [
        (
            f"{one.samples:,}",
            f"{one.minutes:.1f}",
            one.method,
            one.donor or "–",
            f"{one.divergence:.3f}" if one.donor else "–",
            f"{one.validation:.1%}",
            f"{one.median:.1%}",
            f"{one.mape:.1%}",
            f"{one.acc10:.1%}",
            f"{one.n:,}",
            "chosen" if one.chosen else "",
        )
        for one in points
    ]
    columns = ("samples", "minutes", "method", "donor", "divergence", "validation", "median", "mape", "acc10", "n", "")
    show_table(columns, rows, left=4, title=receiver)


COMMAND = command
