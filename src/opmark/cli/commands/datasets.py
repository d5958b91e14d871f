"""`opmark datasets`: releases, which are immutable measurements of one device."""

import sys
from pathlib import Path
from typing import Any

import click

from opmark.cli.completers import releases
from opmark.cli.lookup import graph_finder, release_folder
from opmark.cli.options import FILE, FOLDER, json_option, workspace
from opmark.cli.text.terminal import MISSING, long_step, show_json, show_table
from opmark.core.errors import ContentError, UsageError
from opmark.core.units import counted, format_bytes, format_ns


@click.group(name="datasets")
def group() -> None:
    """Releases: immutable measurements of one device.

    The name of a release is its path, DEVICE/VERSION, or DEVICE for its newest version.
    """


@group.command(name="list", epilog="Example: opmark datasets list")
@json_option
@click.pass_context
def list_releases(ctx: click.Context, as_json: bool) -> None:
    """List the releases of this workspace."""
    from opmark.datasets.release.finding import summaries

    folder = workspace(ctx).datasets
    found = summaries(folder)
    if as_json:
        show_json(found)
        return
    if not found:
        click.echo(f"No release in {folder} yet; opmark bench run, then opmark datasets build.", err=True)
        return
    rows = [
        (item.name, ", ".join(item.targets), f"{item.kernels:,}", f"{item.networks:,}", format_bytes(item.size_bytes))
        for item in found
    ]
    show_table(("release", "targets", "kernels", "networks", "size"), rows, left=2)


@group.command(epilog="Example: opmark datasets show DEVICE")
@click.argument("name", shell_complete=releases)
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show a release: its kinds, statuses, peaks, overhead and noise."""
    from opmark.datasets.format.manifest import reading_figures
    from opmark.datasets.release.finding import find as find_release

    release = find_release(name, release_folder(ctx, name))
    if as_json:
        show_json({"path": str(release.path), **_described(release.manifest)})
        return
    click.echo(f"{release.name}  id {release.id}  licence {release.manifest.licence}")
    origin = release.manifest.provenance
    if origin.source:
        click.echo(f"{origin.kind} from {origin.source}; a latency is {origin.label}")
    for target in release.targets:
        with reading_figures(release.manifest):
            _show_target(release.manifest, target.name)


@group.command(epilog="Example: opmark datasets validate datasets/DEVICE/1.0.0")
@click.argument("path", shell_complete=releases)
@json_option
@click.pass_context
def validate(ctx: click.Context, path: str, as_json: bool) -> None:
    """Check a release completely.

    The exit code is 3 where a check finds an error.
    """
    from opmark.datasets.release.finding import path_of
    from opmark.datasets.validation.check import ERROR
    from opmark.datasets.validation.validate import validate as check

    folder = Path(path) if Path(path).is_dir() else path_of(path, release_folder(ctx, path))
    with long_step("checking the release"):
        found = check(folder)
    errors = [finding for finding in found if finding.level == ERROR]
    if as_json:
        show_json({"path": str(folder), "valid": not errors, "findings": found})
    elif found:
        show_table(
            ("level", "check", "where", "finding"),
            [(finding.level, finding.check, finding.where, finding.message) for finding in found],
            left=4,
        )
    if errors:
        raise ContentError(
            f"{counted(len(errors), 'error')}, the first: {errors[0].where}: {errors[0].message}", where=str(folder)
        )
    if not as_json:
        click.echo(f"{folder}: sound{', ' + counted(len(found), 'warning') if found else ''}", err=True)


@group.command(epilog="Example: opmark datasets build bench/journals/small.jsonl")
@click.argument("journals", nargs=-1, type=click.Path(path_type=Path))
@click.option("--version", help="The new release's version. Default: the next minor version.")
@click.option("--with-journals", is_flag=True, help="Keep the journals, compressed, in the release.")
@json_option
@click.pass_context
def build(
    ctx: click.Context, journals: tuple[Path, ...], version: str | None, with_journals: bool, as_json: bool
) -> None:
    """Build a release from JOURNALS of one machine.

    Without JOURNALS, all journals of this workspace are used. Packed ones (.jsonl.gz, as a release keeps them) serve as
    well. The same journals in any order give the same bytes.
    """
    from opmark.datasets.release.building import build as build_release

    here = workspace(ctx)
    chosen = journals or tuple(sorted(here.journals.glob("*.jsonl")))
    with long_step("building the release"):
        found = build_release(
            chosen, here.datasets, version=version, with_journals=with_journals, find=graph_finder(ctx)
        )
    _show_built(found, as_json)


@group.command(epilog="Example: opmark datasets merge DEVICE/1.0.0 small-2-of-2.jsonl")
@click.argument("sources", nargs=-1, required=True, shell_complete=releases)
@click.option("--version", help="The new release's version. Default: the next minor version.")
@json_option
@click.pass_context
def merge(ctx: click.Context, sources: tuple[str, ...], version: str | None, as_json: bool) -> None:
    """Merge releases and journals of equal machines into a release.

    SOURCES are names or folders of releases, and journals. Nothing is measured: this works on any machine.
    """
    from opmark.datasets.release.building import merge as merge_sources
    from opmark.datasets.release.finding import path_of

    folder = workspace(ctx).datasets
    paths = [Path(source) if Path(source).is_file() else path_of(source, folder) for source in sources]
    with long_step("merging"):
        found = merge_sources(paths, folder, version=version)
    _show_built(found, as_json)


@group.command(epilog="Example: opmark datasets diff DEVICE/1.0.0 DEVICE/1.1.0")
@click.argument("old", shell_complete=releases)
@click.argument("new", shell_complete=releases)
@click.option("-o", "--output", type=FILE, help="Also write an HTML page: the largest changes, and every kind.")
@json_option
@click.pass_context
def diff(ctx: click.Context, *, old: str, new: str, output: Path | None, as_json: bool) -> None:
    """Show the changes from release OLD to release NEW.

    Latencies are compared kind by kind.
    """
    from opmark.core.files import write_text
    from opmark.datasets.release.changes import row_changes
    from opmark.datasets.release.diff import diff as compare
    from opmark.datasets.release.finding import find
    from opmark.studies.release_changes.page import changes_page

    before, after = find(old, release_folder(ctx, old)), find(new, release_folder(ctx, new))
    found = compare(before, after)
    if output is not None:
        write_text(output, changes_page(found, row_changes(before, after)))
    if as_json:
        show_json(found)
        return
    for fact, (before, after) in found.facts.items():
        click.echo(f"{fact}: {before!r} became {after!r}")
    rows = [
        (
            item.target,
            item.kind,
            *(f"{count:,}" for count in (item.added, item.removed, item.common)),
            *(_ratio(value) for value in (item.ratio_p5, item.ratio_median, item.ratio_p95)),
        )
        for item in found.groups
    ]
    columns = ("target", "kind", "added", "removed", "common", "new ÷ old p5", "median", "p95")
    show_table(columns, rows, left=2, title="the same rows" if found.same else f"{found.old} to {found.new}")
    if output is not None:
        click.echo(f"Page: {output}")


@group.command(epilog="Example: opmark datasets export DEVICE --table networks -o networks.csv")
@click.argument("name", shell_complete=releases)
@click.option(
    "--format",
    "format_name",
    default="csv",
    show_default=True,
    help="csv, markdown, parquet, card, croissant, huggingface or folder.",
)
@click.option(
    "--table", default="kernels", show_default=True, help="kernels, networks, fusion, links or network_kernels."
)
@click.option("--target", default="", help="Only the rows of this target.")
@click.option("--flat", is_flag=True, help="Make a column of each parameter of kernels.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file or folder to write. Default: stdout.")
@click.pass_context
def export(
    ctx: click.Context, *, name: str, format_name: str, table: str, target: str, flat: bool, output: Path | None
) -> None:
    """Write a table or the metadata of a release in another format.

    The table network_kernels tells which kernels each network consists of: join it with kernels on kernel_key and
    target.

    The format croissant names the tables by their place on this machine. The format folder copies them into a folder
    that load_dataset and mlcroissant read wherever it lies. The format huggingface is the configurations of
    load_dataset, a part of every newer card.
    """
    from opmark.datasets.release.export import CROISSANT, write
    from opmark.datasets.release.export import export as exported
    from opmark.datasets.release.finding import find as find_release

    release = find_release(name, release_folder(ctx, name))
    if output is not None:
        write(release, format_name, output, table=table, target=target, flat=flat, find=graph_finder(ctx))
        if format_name == CROISSANT:
            where = f"{output} loads from any folder while the tables stay in {release.path.resolve()}"
            click.echo(f"{where}; `--format folder` makes a folder to move.", err=True)
        return
    content = exported(release, format_name, table=table, target=target, flat=flat, find=graph_finder(ctx))
    # Bytes would go past the guard of a terminal.
    click.echo(content.decode(errors="replace") if sys.stdout.isatty() else content, nl=False)


@group.command(name="import", epilog="Example: opmark datasets import linear.csv --format neusight --device a100")
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--format", "format_name", required=True, help="The format of FILES: neusight, aiconfigurator, nn-meter-lut, …"
)
@click.option("--device", required=True, help="The device's name, which is the release's folder.")
@click.option("--fact", "facts", multiple=True, help="A fact about the device: NAME=VALUE; repeatable.")
@click.option("--version", help="The new release's version. Default: the next minor version.")
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    help="The folder of releases. Default: datasets/ in the workspace.",
)
@json_option
@click.pass_context
def import_(
    ctx: click.Context,
    *,
    files: tuple[Path, ...],
    format_name: str,
    device: str,
    facts: tuple[str, ...],
    version: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Import FILES that others published as a device's release.

    Licence and origin are recorded in the manifest and on the card. A published latency becomes the hot label; the
    rotated label stays empty. Rows of operators or element types without a kind in OpMark are left out and counted.
    """
    from opmark.datasets.importing.foreign import import_tables

    folder = workspace(ctx).datasets if output is None else output
    found = import_tables(files, format_name, folder, device=device, facts=_facts(facts), version=version)
    for reason, count in found.left_out.items():
        click.echo(f"left out: {count:,} × {reason}", err=True)
    _show_built(found.release, as_json)


def _facts(pairs: tuple[str, ...]) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{pair!r} is not a fact", hint="write it like last_level_bytes=41943040")
        found[name] = int(value) if value.isdecimal() and len(value) < 19 else value
    return found


def _show_built(release: Any, as_json: bool) -> None:
    from opmark.core.measurements.measurement import FAILED

    kernels, networks = len(release.kernels), len(release.networks)
    refused = int(((release.kernels["status"] == FAILED) & release.kernels["reason"].str.startswith("refused")).sum())
    if refused:
        click.echo(f"{counted(refused, 'row')} refused: faster than four times the measured peak.", err=True)
    if as_json:
        facts = {"name": release.name, "path": str(release.path), "id": release.id}
        show_json({**facts, "kernels": kernels, "networks": networks, "refused": refused})
        return
    click.echo(f"{release.path}  {counted(kernels, 'kernel')}, {counted(networks, 'network')}, id {release.id}")


def _described(manifest: Any) -> dict[str, Any]:
    from opmark.core.canonical import plain

    targets = [{"name": target.name, **plain(target)} for target in manifest.targets]
    return {**plain(manifest), "targets": targets}


def _show_target(manifest: Any, target: str) -> None:
    from opmark.datasets.release.card import quantities

    figures = manifest.statistics[target]
    statuses = ", ".join(f"{count:,} {status}" for status, count in figures["statuses"].items() if count)
    click.echo(
        f"\n{target}: {statuses or 'no kernels'}; {counted(figures['networks'], 'network')} of "
        f"{counted(figures['families'], 'family')}"
    )
    present = {status for status, count in figures["statuses"].items() if count}
    show_table(("quantity", "value"), [(name.replace("`", ""), value) for name, value in quantities(manifest, target)])
    from opmark.core.measurements.measurement import STATUSES

    rows = [
        (
            kind,
            f"{row['rows']:,}",
            *(f"{row['statuses'].get(status, 0):,}" for status in STATUSES if status in present),
            *_times(row["hot_ns"]),
        )
        for kind, row in figures["kinds"].items()
    ]
    columns = ("kind", "rows", *(status.replace("_", " ") for status in STATUSES if status in present))
    show_table((*columns, "fastest", "median", "slowest"), rows)


def _times(hot_ns: dict[str, float] | None) -> tuple[str, str, str]:
    if hot_ns is None:
        return (MISSING,) * 3
    return (format_ns(hot_ns["min"]), format_ns(hot_ns["median"]), format_ns(hot_ns["max"]))


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"


COMMAND = group
