"""A release's README.md: every figure is taken from the manifest, those of links from their rows."""

from collections.abc import Mapping, Sequence

from opmark.core.link import LinkMeasurement
from opmark.core.measurement import STATUSES, USABLE
from opmark.core.units import format_bytes, format_count, format_duration, format_ns
from opmark.datasets.columns import FUSION, KERNELS, LINKS, NETWORKS
from opmark.datasets.environments import common_facts
from opmark.datasets.manifest import Manifest
from opmark.datasets.peaks import FLOPS, HOT_BYTES, ROTATED_BYTES

FILE = "README.md"
QUANTITIES = {FLOPS: "Arithmetic peak", HOT_BYTES: "Traffic peak, hot", ROTATED_BYTES: "Traffic peak, rotated"}


def card(manifest: Manifest, links: Sequence[LinkMeasurement] = ()) -> str:
    """The card as Markdown, with a section on `links` where there are any."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("opmark.datasets", "templates")
    templates = Environment(  # noqa: S701 (Markdown, not HTML)
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True
    )
    templates.filters |= {
        "bytes": format_bytes,
        "counted": counted,
        "counts": _counts,
        "duration": format_duration,
        "factor": lambda value: "–" if value is None else f"{value:.2f}",
        "ns": lambda value: "–" if value is None else format_ns(value),
        "percent": lambda value: "–" if value is None else f"{value:.1%}",
        "quantity": QUANTITIES.__getitem__,
        "rate": format_rate,
        "thousands": lambda value: f"{value:,}",
    }
    figures = manifest.statistics.values()
    text = templates.get_template("card.md.jinja").render(
        manifest=manifest,
        kernels=sum(target["kernels"] for target in figures),
        networks=sum(target["networks"] for target in figures),
        facts=common_facts(manifest.environments),
        tables=(KERNELS, NETWORKS, *(table for table in (FUSION, LINKS) if manifest.entry(table.file) is not None)),
        links=[link for link in links if link.status in USABLE],
    )
    return text.rstrip() + "\n"


def format_rate(rate: float, quantity: str) -> str:
    """`12.3 GFLOP/s` or `8.1 GB/s`."""
    unit = "FLOP/s" if quantity == FLOPS else "B/s"
    number, _, prefix = format_count(rate).partition(" ")
    return f"{number} {prefix}{unit}"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 kernel`, `6,000 kernels`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _counts(statuses: Mapping[str, int]) -> str:
    present = [f"{statuses[status]:,} {status}" for status in STATUSES if statuses[status]]
    return ", ".join(present) or "none"
