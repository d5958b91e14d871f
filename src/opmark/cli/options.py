"""Options that several commands share, their types, and the workspace that a command works in."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.core.errors import ContentError, UsageError
from opmark.core.units import parse_duration_s
from opmark.core.workspace import Workspace, find_workspace

if TYPE_CHECKING:
    from opmark.core.parallel.dask_map import OnDask

DEFAULT_TARGET = "onnxruntime-cpu-t1"
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def workspace(ctx: click.Context) -> Workspace:
    """The workspace of `--workspace`, or the nearest one at or above the current folder. Raises `ContentError`."""
    given = ctx.find_root().obj
    if given is None:
        return find_workspace(Path.cwd())
    folder = Path(given)
    if not folder.is_dir():
        raise ContentError("no such folder", where=str(folder), hint="`opmark init DIR` makes a workspace")
    return Workspace(folder)


def predictors_workspace(ctx: click.Context) -> Workspace:
    """The workspace if it holds a predictor, else the content shipped with OpMark."""
    from opmark.predictors.model.bundle_paths import with_predictors

    return with_predictors(_workspace_or_none(ctx))


def cache_folder(ctx: click.Context) -> Path | None:
    """The workspace's cache; None outside a workspace, which means the user's own cache."""
    here = _workspace_or_none(ctx)
    return None if here is None else here.cache


def suites_folder(ctx: click.Context) -> Path | None:
    """The workspace's suites; None outside a workspace, where only the shipped suites are known."""
    here = _workspace_or_none(ctx)
    return None if here is None else here.suites


def datasets_folder(ctx: click.Context) -> Path | None:
    """The workspace's releases; None outside a workspace."""
    here = _workspace_or_none(ctx)
    return None if here is None else here.datasets


def _workspace_or_none(ctx: click.Context) -> Workspace | None:
    try:
        return workspace(ctx)
    except ContentError:
        return None


class FiniteRange(click.FloatRange):
    """A number within a range. NaN and infinity, which no bound excludes, are usage errors."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; anything else is a usage error."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


class DurationType(click.ParamType[float]):
    """A duration such as `90`, `90s`, `10m` or `2h`, converted to seconds; with `positive`, zero is refused."""

    name = "duration"

    def __init__(self, *, positive: bool = False) -> None:
        self._positive = positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds; a malformed or negative duration is a usage error."""
        if isinstance(value, (int, float)):
            return float(value)
        try:
            seconds = parse_duration_s(value)
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        if self._positive and not seconds:
            self.fail(f"{value!r} is no time; write a positive duration such as 40ms", param, ctx)
        return seconds


class PercentType(click.ParamType[float]):
    """A percentage such as `5%`, `5 %` or `0.05`, converted to a fraction between 0 and 1."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the fraction; anything else is a usage error."""
        text = str(value).strip()
        try:
            fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            fraction = -1.0
        if not 0 < fraction < 1:
            self.fail(f"{value!r} is not a share; write it like 5% or 0.05", param, ctx)
        return fraction


DURATION = DurationType()
POSITIVE_DURATION = DurationType(positive=True)
PERCENT = PercentType()

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="A Dask cluster to work on: tcp://SCHEDULER:8786, or local:4 for four processes of this machine.",
)
missing_option = click.option(
    "--missing",
    type=click.Choice(["error", "bytes-moved"]),
    default="error",
    show_default=True,
    help="How to treat kernels without a predictor and matrix work without a kind: refuse them, or go by their bytes.",
)
_DIGITS = 12
_SIZE = click.IntRange(1, 10**_DIGITS)
SIZES = (
    click.option(
        "--dimension", "dimensions", multiple=True, help="A size the model leaves open: NAME=NUMBER; repeatable."
    ),
    click.option("--batch", type=_SIZE, help="Batch size of a network of the zoo."),
    click.option("--size", type=_SIZE, help="Image side or sequence length of a network of the zoo."),
)


def together(options: Sequence[Decorator]) -> Decorator:
    """One decorator that adds `options` to a command, in the order given."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


size_options = together(SIZES)


def chosen_sizes(dimensions: tuple[str, ...], batch: int | None, size: int | None) -> dict[str, int]:
    """The sizes given as `batch=8` pairs and by `--batch` and `--size`. Raises `UsageError` where they contradict."""
    sizes = {}
    for pair in dimensions:
        name, equals, value = pair.partition("=")
        if not (name and equals and value.isdecimal() and len(value) <= _DIGITS and int(value) > 0):
            raise UsageError(f"--dimension: {pair!r} is not a dimension", hint="write it like batch=8")
        sizes[name] = int(value)
    for name, given in (("batch", batch), ("size", size)):
        if given is not None and sizes.setdefault(name, given) != given:
            raise UsageError(f"--{name} {given} and --dimension {name}={sizes[name]} differ", hint="give one of them")
    return sizes


def listed(text: str) -> list[str]:
    """The names in a comma-separated option: `conv+relu, conv-bn+add`."""
    return [name.strip() for name in text.split(",") if name.strip()]


@contextlib.contextmanager
def on_cluster(address: str | None) -> "Iterator[OnDask | None]":
    """The cluster at `address` while the block runs, or None without an address. Raises as `OnDask` does."""
    if address is None:
        yield None
        return
    from opmark.core.parallel.dask_map import OnDask

    with OnDask(address) as cluster:
        yield cluster
