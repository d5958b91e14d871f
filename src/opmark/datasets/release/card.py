"""A release's README.md: every figure is taken from the manifest, those of links from their rows."""

from collections.abc import Mapping, Sequence

from opmark.core.environment import Fact
from opmark.core.link import LinkMeasurement
from opmark.core.measurement import STATUSES, USABLE
from opmark.core.units import format_bytes, format_ns
from opmark.datasets.format.columns import FUSION, KERNEL_REPEATS, KERNELS, LINKS, NETWORK_REPEATS, NETWORKS
from opmark.datasets.format.environments import common_facts
from opmark.datasets.format.manifest import Manifest
from opmark.datasets.release.quantities import format_rate, quantities

FILE = "README.md"


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
        "factor": lambda value: "–" if value is None else f"{value:.2f}",
        "ns": lambda value: "–" if value is None else format_ns(value),
        "percent": lambda value: "–" if value is None else f"{value:.1%}",
        "rate": format_rate,
        "thousands": lambda value: f"{value:,}",
    }
    figures = manifest.statistics.values()
    facts = common_facts(manifest.environments)
    text = templates.get_template("card.md.jinja").render(
        manifest=manifest,
        kernels=sum(target["kernels"] for target in figures),
        networks=sum(target["networks"] for target in figures),
        facts=facts,
        machine=machine(facts),
        quantities={target.name: quantities(manifest, target.name) for target in manifest.targets},
        tables=(KERNELS, NETWORKS, *(table for table in (FUSION, LINKS) if manifest.entry(table.file) is not None)),
        repeats=[table for table in (KERNEL_REPEATS, NETWORK_REPEATS) if manifest.entry(table.file) is not None],
        links=[link for link in links if link.status in USABLE],
    )
    return text.rstrip() + "\n"


def machine(facts: Mapping[str, Fact]) -> str:
    """What was measured on, as far as it is known: `AMD EPYC, 2 processors, KVM, 32.0 MiB of last-level cache`."""
    processors, cache = facts.get("processors"), facts.get("last_level_bytes")
    parts = [
        str(facts.get("cpu") or ""),
        counted(int(processors), "processor") if processors else "",
        str(facts.get("hypervisor") or ""),
        f"{format_bytes(float(cache))} of last-level cache" if cache else "",
    ]
    return ", ".join(part for part in parts if part and part != "none")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 kernel`, `6,000 kernels`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _counts(statuses: Mapping[str, int]) -> str:
    present = [f"{statuses[status]:,} {status}" for status in STATUSES if statuses[status]]
    return ", ".join(present) or "none"
