"""The release that a command about predictors means, and what it knows of each target."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opmark.cli.options import workspace

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release
    from opmark.predictors.judging.evidence import Evidence


def evidence_by_target(
    ctx: click.Context, release: str | None, targets: Sequence[str], *, networks: bool = True
) -> "dict[str, Evidence]":
    """What the release knows of each target, with the graphs of its networks."""
    from opmark.predictors.inputs.graphs import graphs_of
    from opmark.predictors.judging.evidence import evidence_of

    found = release_named(ctx, release)
    cache = workspace(ctx).cache
    return {
        name: evidence_of(
            found,
            name,
            graphs_of(found.network_measurements(name), name, cache=cache, warn=warn) if networks else {},
        )
        for name in targets_named(found, targets)
    }


def release_named(ctx: click.Context, name: str | None) -> "Release":
    """The release called so; without a name, the newest of the only device.

    Raises `UsageError` where there are several devices, `NothingSelectedError` where there is none.
    """
    from opmark.core.errors import NothingSelectedError, UsageError
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


def targets_named(release: "Release", wanted: Sequence[str]) -> list[str]:
    """The names of those wanted, or of all it has. Raises `UnknownNameError`."""
    return [release.target(name).name for name in wanted] or [target.name for target in release.targets]


def warn(message: str) -> None:
    """A note on stderr."""
    click.echo(f"note: {message}", err=True)
