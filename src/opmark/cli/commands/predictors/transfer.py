"""`opmark predictors transfer`: predict a new target from few samples and the predictor of another target."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.commands.predictors._options import curve_page_option, donor_option, pace_option
from opmark.cli.lookup import donors_named, possible_donors, release_and_target, training_graphs
from opmark.cli.options import FOLDER, json_option, workspace
from opmark.cli.text.terminal import MISSING, progress_bar, show_json, show_table
from opmark.core.errors import UsageError
from opmark.core.units import counted

if TYPE_CHECKING:
    from opmark.predictors.model.manifest import BundleManifest
    from opmark.predictors.transfer.curve import TransferPoint


@click.command(name="transfer", epilog="Example: opmark predictors transfer DEVICE:onnxruntime-cpu-t1 --samples 50")
@click.argument("receiver")
@donor_option
@click.option(
    "--samples", multiple=True, type=click.IntRange(min=5), help="The number of kernels to learn from; repeatable."
)
@pace_option
@curve_page_option
@click.option(
    "--store",
    is_flag=True,
    help="Store a predictor of RECEIVER, trained on --samples of its kernels (default: all), instead of a curve.",
)
@click.option("--to", "folder", type=FOLDER, help="Store the predictor in this folder; implies --store.")
@json_option
@click.pass_context
def transfer(
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
    """Predict a target from few samples and another predictor.

    RECEIVER is RELEASE:TARGET. Without --donor, every other target is a possible donor. The donor whose utilisation
    diverges least on some of the samples is used; validation on the samples chooses between learning its residual,
    simpler corrections, and learning without a donor. Kernels of unseen shape groups judge the result. With --store,
    the chosen predictor is stored where `opmark predict` finds it.
    """
    if store or folder is not None:
        _store(ctx, receiver, donors, samples, page=page, folder=folder, as_json=as_json)
    else:
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
    from opmark.predictors.inputs.features import Hardware, hardware_of
    from opmark.predictors.model.metrics import assumption
    from opmark.predictors.transfer.curve import SAMPLES, transfer_curve

    here = workspace(ctx)
    release, target = release_and_target(here, receiver)
    name = f"{release.name}:{target}"
    environments = release.manifest.environments
    with progress_bar(transient=True) as progress:
        task = progress.add_task("donors", total=None)
        points = transfer_curve(
            release.measurements(target),
            donors_named(here, donors or possible_donors(here, but=name)),
            hardware=hardware_of(environments[0].checked) if environments else Hardware(),
            samples=samples or SAMPLES,
            kernels_per_second=kernels_per_second,
            progress=lambda what: progress.update(task, description=what),
        )
    if as_json:
        show_json(points)
    else:
        _show_points(name, points)
        click.echo(assumption(kernels_per_second), err=True)
    if page is not None:
        from opmark.studies.predictor_pages.curves import transfer_page

        write_text(page, transfer_page(name, points))
        click.echo(str(page), err=True)


def _show_points(receiver: str, points: "list[TransferPoint]") -> None:
    rows = [
        (
            f"{one.samples:,}",
            f"{one.minutes:.1f}",
            one.method,
            one.donor or MISSING,
            f"{one.divergence:.3f}" if one.donor else MISSING,
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
    from opmark.predictors.model.bundle import load, save
    from opmark.predictors.model.bundle_paths import bundle_path, refuse_to_replace
    from opmark.predictors.transfer.adapted_bundle import transfer_release

    if len(samples) > 1 or page is not None:
        raise UsageError("--store stores one predictor and draws no curve", hint="give --samples once, without --page")
    here = workspace(ctx)
    release, target = release_and_target(here, receiver)
    place = folder or bundle_path(here, release.device, release.version, target)
    if folder is None:
        refuse_to_replace(place)
    with progress_bar(transient=True) as progress:
        progress.add_task("learning", total=None)
        known = donors_named(here, donors or possible_donors(here, but=f"{release.name}:{target}"))
        graphs = training_graphs(here, release, target)
        bundle = transfer_release(release, target, known, samples=samples[0] if samples else None, graphs=graphs)
        save(bundle, place)
    manifest = load(place).manifest
    if as_json:
        facts = {"path": str(place), "target": str(manifest.target), "id": manifest.id}
        show_json({**facts, "transfer": manifest.transfer})
    else:
        click.echo(str(place))
        _show_stored(manifest)


def _show_stored(manifest: "BundleManifest") -> None:
    made = manifest.transfer
    assert made is not None
    click.echo(f"{manifest.target}: {made.method} on {counted(made.samples, 'sample')}; donor: {made.donor or 'none'}")
    tried = sorted(made.validation.items(), key=lambda item: item[1])
    rows = [(name, f"{error:.1%}", "chosen" if name == made.method else "") for name, error in tried]
    show_table(("method", "validation", ""), rows)
