"""Transfer a predictor to another target, and show when that is worth it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.context import workspace
from opmark.cli.output import json_option, progress_bar, show_json, show_table
from opmark.core.errors import UsageError

if TYPE_CHECKING:
    from opmark.core.workspace import Workspace
    from opmark.datasets.release import Release
    from opmark.predictors.transfer import Donor, TransferPoint


@click.command(name="transfer")
@click.argument("receiver")
@click.option(
    "--donor", "donors", multiple=True, help="RELEASE:TARGET; repeatable; default: every other target there is."
)
@click.option(
    "--samples", multiple=True, type=click.IntRange(min=5), help="How many kernels to learn from; repeatable."
)
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves to this HTML file.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    receiver: str,
    donors: tuple[str, ...],
    samples: tuple[int, ...],
    page: Path | None,
    as_json: bool,
) -> None:
    """Learn RECEIVER (RELEASE:TARGET) from few samples, with and without another target's predictor.

    The donor is the one whose utilisation diverges least on a probe of the samples; validation on the samples chooses
    between its residual, simpler corrections and learning from scratch. Kernels of unseen shape groups judge.
    """
    from opmark.core.files import write_text
    from opmark.predictors.hardware import Hardware, hardware_of
    from opmark.predictors.transfer import SAMPLES, transfer_curve

    here = workspace(ctx)
    release, target = _found(here, receiver)
    environments = release.manifest.environments
    with progress_bar(transient=True) as progress:
        task = progress.add_task("donors", total=None)
        names = donors or tuple(name for name in _everything(here) if name != f"{release.name}:{target}")
        known = [_donor(here, name) for name in names]
        points = transfer_curve(
            release.measurements(target),
            known,
            hardware=hardware_of(environments[0].checked) if environments else Hardware(),
            samples=samples or SAMPLES,
            progress=lambda what: progress.update(task, description=what),
        )
    if page is not None:
        from opmark.studies.transfer_page import transfer_page

        write_text(page, transfer_page(f"{release.name}:{target}", points))
        click.echo(str(page), err=True)
    if as_json:
        show_json(points)
        return
    _show(f"{release.name}:{target}", points)


def _found(here: "Workspace", name: str) -> "tuple[Release, str]":
    from opmark.datasets.find import find

    release_name, colon, target = name.rpartition(":")
    if not colon:
        raise UsageError(f"{name!r} names no target", hint="write it like DEVICE/VERSION:onnxruntime-cpu-t1")
    release = find(release_name, here.datasets)
    return release, release.target(target).name


def _everything(here: "Workspace") -> list[str]:
    """The newest release of every device, target by target."""
    from opmark.datasets.find import find, names

    newest = {name.partition("/")[0]: name for name in names(here.datasets)}
    return [f"{name}:{target.name}" for name in newest.values() for target in find(name, here.datasets).targets]


def _donor(here: "Workspace", name: str) -> "Donor":
    """The donor's stored bundle, else one trained now."""
    from opmark.predictors.bundle import load
    from opmark.predictors.cost_model import BYTES_MOVED, CostModel
    from opmark.predictors.store import bundle_path
    from opmark.predictors.train import train
    from opmark.predictors.transfer import Donor

    release, target = _found(here, name)
    folder = bundle_path(here, release.device, release.version, target)
    bundle = load(folder) if folder.is_dir() else train(release, target)
    return Donor(name=f"{release.name}:{target}", model=CostModel(bundle, missing=BYTES_MOVED))


def _show(receiver: str, points: "list[TransferPoint]") -> None:
    rows = [
        (
            f"{one.samples:,}",
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
    columns = ("samples", "method", "donor", "divergence", "validation", "median", "mape", "acc10", "n", "")
    show_table(columns, rows, left=3, title=receiver)


COMMAND = command
