"""`opmark predictors train`, `list` and `show`: stored predictors."""

import time
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli import completers
from opmark.cli.commands.predictors._options import release_argument, targets_option
from opmark.cli.lookup import donors_by_target, larger_donor, release_named, targets_named, training_graphs
from opmark.cli.options import json_option, predictors_workspace, workspace
from opmark.cli.text.terminal import MISSING, progress_bar, show_json, show_note, show_table
from opmark.core.errors import UsageError
from opmark.core.units import format_bytes, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.progress import Progress

    from opmark.core.kernels.graph import Graph
    from opmark.core.workspace import Workspace
    from opmark.datasets.release.release import Release
    from opmark.predictors.model.bundle import Bundle
    from opmark.predictors.model.training import Beginning


@click.command(epilog="Example: opmark predictors train --target onnxruntime-cpu-t1")
@release_argument
@targets_option
@click.option(
    "--estimator",
    default="lightgbm",
    show_default=True,
    shell_complete=completers.estimators,
    help="The estimator; `opmark list estimators` lists them.",
)
@click.option(
    "--most-rows", type=click.IntRange(min=1), help="Train each kind on at most this many rows, by their keys."
)
@click.option(
    "--donor",
    "donors",
    multiple=True,
    help="A predictor of another device that is corrected where this tells more: RELEASE:TARGET, a predictor's folder, "
    "or DEVICE/VERSION/TARGET; one for each target.",
)
@click.option(
    "--kernels-of",
    metavar="VERSION",
    help="Keep what the stored predictors of this version know of kernels, and fit only the network constants.",
)
@click.option(
    "--version", help="Store the predictors under this version, which must be new. Default: the version of RELEASE."
)
@json_option
@click.pass_context
def train(
    ctx: click.Context,
    *,
    release: str | None,
    targets: tuple[str, ...],
    estimator: str,
    most_rows: int | None,
    donors: tuple[str, ...],
    kernels_of: str | None,
    version: str | None,
    as_json: bool,
) -> None:
    """Train predictors on RELEASE and store them in the workspace.

    With --donor, every kind also learns how much longer kernels take than the donor says, and keeps what predicts
    held-out shape groups better. With --kernels-of, nothing is learned about kernels: the networks of RELEASE alone
    tell the constants of their sums, which takes a minute or two.
    A released predictor never changes: one that a better learner makes of the same RELEASE gets a --version of its own.
    """
    from opmark.core.workspace import version_key
    from opmark.predictors.estimators import ESTIMATORS
    from opmark.predictors.model.adapted_learner import LEARNER
    from opmark.predictors.model.bundle import save
    from opmark.predictors.model.bundle_paths import bundle_path, refuse_known_version
    from opmark.predictors.model.training import train as train_target
    from opmark.predictors.transfer.corrected import train_corrected

    ESTIMATORS.load(estimator)
    usual = estimator == LEARNER and most_rows is None
    if donors and not usual:
        raise UsageError(f"--donor goes with the estimator {LEARNER} and all rows", hint="leave the other option out")
    if kernels_of is not None and (donors or not usual or version is None):
        raise UsageError(
            "--kernels-of goes with --version alone", hint="give a new --version, and leave other ways to train out"
        )
    found = release_named(ctx, release)
    here = workspace(ctx)
    if version is not None:
        version_key(version)
    names = targets_named(found, targets)
    folders = {name: bundle_path(here, found.device, version or found.version, name) for name in names}
    if version is not None:
        refuse_known_version(folders.values())
    written = []
    known = donors_by_target(here, donors, names)
    with progress_bar(transient=True) as progress:
        for name, folder in folders.items():
            begun = _telling(progress, name, int((found.kernels["target"] == name).sum()))
            graphs = training_graphs(here, found, name)
            if kernels_of is not None:
                bundle = _composed(here, found, f"{found.device}/{kernels_of}/{name}", graphs, begun)
            elif name in known:
                bundle = train_corrected(found, name, known[name], graphs=graphs, begun=begun)
            else:
                bundle = train_target(found, name, estimator=estimator, graphs=graphs, most_rows=most_rows, begun=begun)
            save(bundle, folder)
            written.append(_document(folder))
    _show_all(written, as_json)
    if estimator == LEARNER and not (donors or kernels_of):
        _name_larger_donors(here, found.device, dict(zip(names, written, strict=True)))


def _show_all(written: "Sequence[dict[str, Any]]", as_json: bool) -> None:
    if as_json:
        show_json(written)
    else:
        for one in written:
            _show(one)


def _name_larger_donors(here: "Workspace", device: str, written: "Mapping[str, dict[str, Any]]") -> None:
    """Note the predictors of other devices that know more kernels than those `written` of `device`, by target."""
    for name, one in written.items():
        rows = sum(kind["rows"] for kind in one["kinds"].values())
        if larger := larger_donor(here, device, name, rows=rows):
            show_note(f"{name}: `--donor {larger}` may predict better: it knows more kernels, of another device")


def _composed(
    here: "Workspace", release: "Release", name: str, graphs: "Mapping[str, Graph]", begun: "Beginning"
) -> "Bundle":
    """The stored predictor `name` with network constants fitted anew on `release`."""
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import path_of
    from opmark.predictors.model.training import with_constants_of

    stored = load(path_of(here, name), target_name=name.rpartition("/")[2])
    return with_constants_of(stored, release, graphs=graphs, begun=begun)


def _telling(progress: "Progress", target: str, rows: int) -> "Beginning":
    """A task of the `target`'s own, whose pace is its rows', and a function that tells which kind is begun.

    A kind tells nothing until it ends. Meanwhile its own part of the time left passes, and no more than that.
    """
    task = progress.add_task(target, total=rows)
    started = time.monotonic()

    def begun(kind: str, done: float, own: float) -> None:
        now = time.monotonic()

        def left_s() -> float | None:
            if not done:
                return None
            pace_s = (now - started) / done
            return max(0.0, pace_s * own - (time.monotonic() - now)) + pace_s * max(0.0, 1 - done - own)

        progress.update(task, description=f"{target}, {kind}", completed=int(done * rows), left_s=left_s)

    return begun


@click.command(name="list", epilog="Example: opmark predictors list")
@json_option
@click.pass_context
def list_bundles(ctx: click.Context, as_json: bool) -> None:
    """List the predictors of this workspace.

    Where it holds none, the predictors shipped with OpMark are listed.
    """
    from opmark.predictors.model.bundle_paths import stored_bundles
    from opmark.predictors.model.manifest import read_manifest

    here = predictors_workspace(ctx)
    found = [
        {
            "name": one.name,
            "path": str(one.path),
            "target": manifest.target.name,
            "estimator": manifest.estimator,
            "kinds": len(manifest.kinds),
            "rows": sum(entry.rows for entry in manifest.kinds.values()),
        }
        for one in stored_bundles(here)
        if (manifest := read_manifest(one.path))
    ]
    if as_json:
        show_json(found)
        return
    if not found:
        click.echo(f"No predictor in {here.predictors} yet; opmark predictors train.", err=True)
        return
    rows = [(str(one["name"]), str(one["estimator"]), str(one["kinds"]), f"{one['rows']:,}") for one in found]
    show_table(("predictor", "estimator", "kinds", "rows"), rows, left=2)


@click.command(epilog="Example: opmark predictors show onnxruntime-cpu-t1")
@click.argument("name")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show a predictor.

    NAME is a folder, DEVICE/VERSION/TARGET, or TARGET for its newest predictor.
    """
    from opmark.predictors.model.bundle_paths import path_of

    described = _document(Path(name) if Path(name).is_dir() else path_of(predictors_workspace(ctx), name))
    if as_json:
        show_json(described)
    else:
        _show(described)


def _document(folder: Path) -> dict[str, Any]:
    from opmark.predictors.model.bundle import load

    manifest = load(folder).manifest
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


def _show(one: dict[str, Any]) -> None:
    release, constants = one["release"], one["constants"]
    click.echo(f"{one['target']}  {one['estimator']} on {release.device}/{release.version}, id {one['id']}")
    click.echo(f"{one['path']}  {format_bytes(one['size_bytes'])}")
    made = one["transfer"]
    if made is not None:
        click.echo(f"{made.method}, chosen by validation on {made.samples:,} samples; donor: {made.donor or 'none'}")
    rows = [
        (
            kind,
            f"{entry['rows']:,}",
            f"{entry['errors'].groups:,}",
            f"{entry['metrics']['median']:.1%}" if entry["metrics"] else MISSING,
            f"{entry['metrics']['acc10']:.0%}" if entry["metrics"] else MISSING,
            f"÷× {exp(entry['errors'].half_width):.2f}",
        )
        for kind, entry in one["kinds"].items()
    ]
    show_table(("kind", "rows", "groups", "median error", "within ±10 %", "90 % interval"), rows)
    between = format_ns(constants.gap_ns)
    extra = format_ns(constants.matrix_gap_ns)
    small = " of large networks" if constants.matrix_gap_ns and constants.matrix_gap_midpoint else ""
    python = f", {format_ns(constants.python_call_ns)} for each Python function" if constants.python_call_ns else ""
    scaled = "" if constants.kernel_scale == 1 else f"kernels take {constants.kernel_scale:.3f} times their label, "
    click.echo(
        f"{one['note']}; {scaled}time between kernels {between}, {extra} more before matrix work{small}{python}",
        err=True,
    )
