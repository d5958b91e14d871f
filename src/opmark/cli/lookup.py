"""Find the releases, predictors and graphs that a command line names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.options import cache_folder, predictors_workspace, workspace
from opmark.cli.text.terminal import long_step, show_note
from opmark.core.errors import NothingSelectedError, UsageError

if TYPE_CHECKING:
    from opmark.core.hardware.target import Target
    from opmark.core.kernels.graph import Graph
    from opmark.core.measurements.measurement import NetworkMeasurement
    from opmark.core.workspace import Workspace
    from opmark.datasets.release.network_kernels import GraphFinder
    from opmark.datasets.release.release import Release
    from opmark.predictors.judging.evidence import Evidence
    from opmark.predictors.model.bundle import Bundle
    from opmark.predictors.transfer.choosing import Donor


def release_named(ctx: click.Context, name: str | None) -> "Release":
    """The release called `name`; without a name, the newest release of the only device.

    Raises `UsageError` where there are several devices, `NothingSelectedError` where there is none.
    """
    from opmark.datasets.release.finding import find, names

    folder = workspace(ctx).datasets
    if name is not None:
        return find(name, folder)
    devices = sorted({item.partition("/")[0] for item in names(folder)})
    if not devices:
        raise NothingSelectedError(
            "there is no release yet", where=str(folder), hint="opmark bench run, then opmark datasets build"
        )
    if len(devices) > 1:
        raise UsageError(f"there are releases of {len(devices)} devices", hint=f"name one: {', '.join(devices)}")
    return find(devices[0], folder)


def release_folder(ctx: click.Context, name: str) -> Path:
    """The folder of releases to look `name` up in; a path needs no workspace."""
    return Path(name).parent if Path(name).is_dir() else workspace(ctx).datasets


def release_and_target(here: "Workspace", name: str) -> "tuple[Release, str]":
    """The release and the target name in `RELEASE:TARGET`. Raises `UsageError`."""
    from opmark.datasets.release.finding import find

    release_name, colon, target = name.rpartition(":")
    if not colon:
        raise UsageError(f"{name!r} names no target", hint="write it like DEVICE/VERSION:onnxruntime-cpu-t1")
    release = find(release_name, here.datasets)
    return release, release.target(target).name


def targets_named(release: "Release", wanted: Sequence[str]) -> list[str]:
    """The names of the targets `wanted`, or of every target of the release. Raises `UnknownNameError`."""
    return [release.target(name).name for name in wanted] or [target.name for target in release.targets]


def evidence_by_target(
    ctx: click.Context, release: str | None, targets: Sequence[str], *, networks: bool = True
) -> "dict[str, Evidence]":
    """The release's evidence for each target; `networks` adds the graphs of the measured networks."""
    from opmark.predictors.judging.evidence import development, evidence_of

    found = release_named(ctx, release)
    cache = workspace(ctx).cache
    return {
        name: evidence_of(
            found,
            name,
            release_graphs(found, development(found, name), name, cache=cache) if networks else {},
        )
        for name in targets_named(found, targets)
    }


def graph_finder(ctx: click.Context) -> "GraphFinder":
    """The way to find graphs of measured networks: from the cache, from those stored with OpMark, or captured."""
    from opmark.predictors.inputs.graphs import graphs_of

    cache = cache_folder(ctx)
    return lambda networks, target: graphs_of(networks, target, cache=cache, warn=show_note)


def training_graphs(here: "Workspace", release: "Release", target: str) -> "Mapping[str, Graph]":
    """The graphs of the release's networks that predictors of `target` learn from."""
    training = [one for one in release.network_measurements(target) if one.role == "training"]
    return release_graphs(release, training, target, cache=here.cache)


def release_graphs(
    release: "Release", networks: Iterable["NetworkMeasurement"], target: str, *, cache: Path | None
) -> "Mapping[str, Graph]":
    """The graphs of some `networks` of a release, with the blocks of the processor that it measured."""
    from opmark.predictors.inputs.graphs import graphs_of
    from opmark.predictors.model.training import release_hardware

    width = release_hardware(release).block_width
    return graphs_of(networks, target, cache=cache, warn=show_note, block_width=width)


def bundle_and_graph(
    ctx: click.Context, model: str, *, target: str, bundle: Path | None, sizes: Mapping[str, int]
) -> "tuple[Bundle, Graph]":
    """The predictor to use and the graph of `model`; a bundle given by its path needs no workspace.

    `target` may include its device, as OpMark prints it: `DEVICE/onnxruntime-cpu-t1`.
    """
    from opmark.models.resolve import graph_to_predict
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import path_of

    name = target.rpartition("/")[2]
    loaded = load(bundle or path_of(predictors_workspace(ctx), target), target_name=name)
    cache = cache_folder(ctx) if bundle is None else None
    with long_step(f"capturing the kernels of {model}"):
        graph, versions = graph_to_predict(
            model, name, cache=cache, dimensions=sizes, block_width=loaded.manifest.hardware.block_width
        )
    if versions:
        show_note(
            f"the kernels of {model} are those that {versions} runs; "
            f"`opmark models show {model}` captures those of the version here, which are used from then on"
        )
    return loaded, graph


def bundles_named(ctx: click.Context, targets: Sequence[str]) -> "list[Bundle]":
    """The newest predictor of every target in `targets` (`[DEVICE/]TARGET`); without any, of every device and target.

    Raises `ContentError` for a target without a predictor.
    """
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import path_of, stored_bundles

    here = predictors_workspace(ctx)
    newest = {(one.device, one.target): one.path for one in stored_bundles(here)}
    paths = [path_of(here, target) for target in targets] or list(newest.values())
    return [load(path) for path in dict.fromkeys(paths)]


def note_other_machine(ctx: click.Context, target: "Target") -> None:
    """Print a note where predictions for `target` are not about this machine, with what would be."""
    from opmark.predictors.model.bundle_paths import stored_bundles
    from opmark.studies.machine.facts import device_names, is_this_machine

    if is_this_machine(target.device):
        return
    names = device_names()
    own = {
        f"{one.device}/{one.target}"
        for one in stored_bundles(predictors_workspace(ctx))
        if one.device in names and one.target == target.name
    }
    known = f"`--target {min(own)}` is measured on a machine of this sort, and " if own else ""
    show_note(
        f"this is {names[0]}, but the prediction is for {target.device}; "
        f"{known}`opmark quickstart` measures and predicts this machine"
    )


def donors_named(here: "Workspace", names: Sequence[str]) -> "list[Donor]":
    """The predictors to transfer from: stored or shipped ones by folder or name, or those of a release's target.

    A release's target without a stored predictor gets one trained now.
    """
    return [_donor(here, name) for name in names]


def donors_by_target(here: "Workspace", names: Sequence[str], targets: Sequence[str]) -> "dict[str, Donor]":
    """The predictors `names` by the target that they predict. Raises `UsageError` where there is not one for each."""
    found = {donor.model.bundle.target.name: donor for donor in donors_named(here, names)}
    if names and (len(found) < len(names) or set(found) != set(targets)):
        raise UsageError(
            f"--donor predicts {', '.join(sorted(found))}, and {', '.join(targets)} is asked for",
            hint="give one --donor for each --target",
        )
    return found


def larger_donor(here: "Workspace", device: str, target: str, *, rows: int) -> str | None:
    """The predictor of a device other than `device` that learned from most kernels on `target`, if more than `rows`."""
    from opmark.predictors.model.manifest import read_manifest

    newest = {}
    for name, path in _known_predictors(here).items():
        other, _, predicted = name.split("/")
        if predicted == target and other != device:
            newest[other] = name, path
    known = {name: sum(entry.rows for entry in read_manifest(path).kinds.values()) for name, path in newest.values()}
    best = max(known, key=lambda name: known[name], default=None)
    return best if best and known[best] > rows else None


def _known_predictors(here: "Workspace") -> dict[str, Path]:
    """The predictors shipped with OpMark and those of the workspace by DEVICE/VERSION/TARGET, oldest first."""
    from opmark.core.errors import UnavailableError
    from opmark.core.shipped import shipped_content
    from opmark.predictors.model.bundle_paths import stored_bundles

    try:
        shipped = stored_bundles(shipped_content())
    except UnavailableError:
        shipped = []
    return {one.name: one.path for one in (*shipped, *stored_bundles(here))}


def possible_donors(here: "Workspace", *, but: str) -> list[str]:
    """`RELEASE:TARGET` of every target in the newest release of every device, except `but`."""
    from opmark.datasets.release.finding import find, names

    newest = {name.partition("/")[0]: name for name in names(here.datasets)}
    found = [f"{name}:{target.name}" for name in newest.values() for target in find(name, here.datasets).targets]
    return [name for name in found if name != but]


def _donor(here: "Workspace", name: str) -> "Donor":
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import bundle_path
    from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
    from opmark.predictors.model.manifest import FILE
    from opmark.predictors.model.training import train
    from opmark.predictors.transfer.choosing import Donor

    folder = Path(name) if (Path(name) / FILE).is_file() else _known_predictors(here).get(name)
    if folder is None:
        release, target = release_and_target(here, name)
        place = bundle_path(here, release.device, release.version, target)
        if not place.is_dir():
            return Donor(name=f"{release.name}:{target}", model=CostModel(train(release, target), missing=BYTES_MOVED))
        folder = place
    bundle = load(folder)
    origin = bundle.manifest.origin
    named = f"{origin.device}/{origin.version}:{bundle.target.name}"
    return Donor(name=named, model=CostModel(bundle, missing=BYTES_MOVED))
