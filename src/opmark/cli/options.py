"""What commands share: the workspace and option types."""

from pathlib import Path
from typing import Any

import click

from opmark.core.errors import ContentError, UsageError
from opmark.core.units import parse_duration_s
from opmark.core.workspace import Workspace, find_workspace


def workspace(ctx: click.Context) -> Workspace:
    """The workspace given by `--workspace`, or the one found upward from here. Raises `ContentError`."""
    given = ctx.find_root().obj
    if given is None:
        return find_workspace(Path.cwd())
    folder = Path(given)
    if not folder.is_dir():
        raise ContentError("no such folder", where=str(folder), hint="`opmark init DIR` makes a workspace")
    return Workspace(folder)


def cache_folder(ctx: click.Context) -> Path | None:
    """The workspace's cache; None outside of one, which is the user's own."""
    here = _workspace_if_any(ctx)
    return None if here is None else here.cache


def suites_folder(ctx: click.Context) -> Path | None:
    """The workspace's suites; None outside of one, as shipped suites need none."""
    here = _workspace_if_any(ctx)
    return None if here is None else here.suites


def datasets_folder(ctx: click.Context) -> Path | None:
    """The workspace's releases; None outside of one."""
    here = _workspace_if_any(ctx)
    return None if here is None else here.datasets


def _workspace_if_any(ctx: click.Context) -> Workspace | None:
    try:
        return workspace(ctx)
    except ContentError:
        return None


class Duration(click.ParamType[float]):
    """`90`, `90s`, `10m`, `2h`; gives seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds as a float; a malformed or negative one is a usage error."""
        if isinstance(value, (int, float)):
            return float(value)
        try:
            return parse_duration_s(value)
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


DURATION = Duration()


class Percent(click.ParamType[float]):
    """`5%`, `5 %` or `0.05`; gives a fraction between 0 and 1."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The fraction; what is none is a usage error."""
        text = str(value).strip()
        try:
            fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            fraction = -1.0
        if not 0 < fraction < 1:
            self.fail(f"{value!r} is not a share; write it like 5% or 0.05", param, ctx)
        return fraction


PERCENT = Percent()
