"""`opmark bench links`: measure transfers between devices."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.commands.bench._options import default_journal, journal_option
from opmark.cli.options import json_option, listed
from opmark.cli.text.terminal import MISSING, run_progress, show_json, show_table
from opmark.core.errors import UsageError
from opmark.core.units import format_count, format_duration, format_ns

if TYPE_CHECKING:
    from opmark.bench.links.measuring import LinkReport


@click.command(epilog="Example: opmark bench links --devices cores")
@click.option("--devices", default="", help="cores, cuda or cuda:0, separated by commas. Default: every device here.")
@click.option("--most", default="256MiB", show_default=True, help="The size of the largest transfer.")
@journal_option
@json_option
@click.pass_context
def links(ctx: click.Context, *, devices: str, most: str, journal: Path | None, as_json: bool) -> None:
    """Measure transfers between cores, and between host and GPU.

    The times from 64 B to 256 MiB are described by straight lines, whose largest error is stated.
    """
    from opmark.bench.links.measuring import LEAST_BYTES, measure_links, present
    from opmark.core.units import parse_size_bytes

    most_bytes = parse_size_bytes(most)
    if most_bytes < 2 * LEAST_BYTES:
        raise UsageError(f"{most} leaves no two sizes to measure", hint="write it like 64MiB")
    with run_progress("links") as show:
        report = measure_links(
            tuple(listed(devices)) or present(),
            journal=journal or default_journal(ctx, "links"),
            most_bytes=most_bytes,
            progress=show,
        )
    if as_json:
        show_json({"journal": str(report.journal), "links": report.links, "seconds": round(report.seconds, 1)})
    else:
        _show(report)


def _show(report: "LinkReport") -> None:
    rows = []
    for link in report.links:
        status = link.status if not link.reason else f"{link.status}: {link.reason}"
        figures = [MISSING] * 5
        if link.knots:
            figures = [
                format_ns(link.hand_off_ns or 0.0),
                format_ns(link.transfer_ns(4096)),
                format_ns(link.transfer_ns(1 << 20)),
                f"{format_count(link.bandwidth_bytes_per_s or 0.0)}B/s",
                str(len(link.knots) - 1),
            ]
        error = MISSING if link.largest_error is None else f"{link.largest_error:.1%}"
        rows.append((link.source, link.destination, link.memory, status, *figures, error))
    names = ("from", "to", "memory", "status")
    show_table((*names, "hand-over", "4 KiB", "1 MiB", "bandwidth", "lines", "largest error"), rows, left=len(names))
    click.echo(f"{format_duration(report.seconds)}: {report.journal}", err=True)
