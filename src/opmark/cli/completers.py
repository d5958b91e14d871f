"""Shell completion of names: extensions of this installation, and content of the current workspace."""

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from opmark.core.errors import ContentError
from opmark.core.workspace import Workspace, find_workspace, versions

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Callable[[click.Context], Iterable[str]], *, or_file: bool = False) -> Completer:
    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        del parameter
        found = [CompletionItem(name) for name in names(ctx) if name.startswith(typed)]
        # The file comes first: a shell forgets the items before it.
        return [CompletionItem(typed, type="file"), *found] if or_file else found

    return complete


def _workspace(ctx: click.Context) -> Workspace | None:
    """The workspace of the command line being typed; the root command has not run yet."""
    given = ctx.find_root().params.get("workspace")
    try:
        return find_workspace(Path.cwd()) if given is None else Workspace(Path(given))
    except ContentError:
        return None


def _folders(folder: Path) -> list[Path]:
    return sorted(item for item in folder.iterdir() if item.is_dir()) if folder.is_dir() else []


def _placers(_: click.Context) -> Iterable[str]:
    from opmark.leaderboards.search.placer import PLACERS

    return PLACERS.names()


def _estimators(_: click.Context) -> Iterable[str]:
    from opmark.predictors.estimators import ESTIMATORS

    return ESTIMATORS.names()


def _models(_: click.Context) -> Iterable[str]:
    from opmark.models.zoo import models

    return models()


def _suites(ctx: click.Context) -> Iterable[str]:
    from opmark.bench.suite.suite import suites

    here = _workspace(ctx)
    return suites(None if here is None else here.suites)


def _tracks(ctx: click.Context) -> Iterable[str]:
    here = _workspace(ctx)
    return () if here is None else (path.parent.name for path in sorted(here.leaderboards.glob("*/track.yaml")))


def _releases(ctx: click.Context) -> Iterable[str]:
    here = _workspace(ctx)
    devices = () if here is None else _folders(here.datasets)
    return [name for device in devices for name in (device.name, *(f"{device.name}/{one}" for one in versions(device)))]


def _predicted_targets(ctx: click.Context) -> Iterable[str]:
    here = _workspace(ctx)
    devices = () if here is None else _folders(here.predictors)
    bundles = (bundle for device in devices for one in versions(device) for bundle in _folders(device / one))
    return sorted({bundle.name for bundle in bundles})


placers = _completer(_placers)
estimators = _completer(_estimators)
models = _completer(_models, or_file=True)
suites = _completer(_suites, or_file=True)
tracks = _completer(_tracks)
releases = _completer(_releases, or_file=True)
predicted_targets = _completer(_predicted_targets)
