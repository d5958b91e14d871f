"""A release's README.md; its figures come from the manifest, those of links from their rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opmark.core.hardware.link import LinkMeasurement
from opmark.core.measurements.environment import Fact
from opmark.core.measurements.measurement import STATUSES, USABLE
from opmark.core.units import format_bytes, format_count, format_duration, format_ns
from opmark.datasets.format.columns import FUSION, KERNEL_REPEATS, KERNELS, LINKS, NETWORK_REPEATS, NETWORKS
from opmark.datasets.format.manifest import (
    FLOPS,
    HOT_BYTES,
    ROTATED_BYTES,
    ReleaseManifest,
    common_facts,
    reading_figures,
)
from opmark.datasets.release.huggingface import configurations_text

if TYPE_CHECKING:
    from jinja2 import Template

FILE = "README.md"
RATES = {
    FLOPS: "highest arithmetic rate",
    HOT_BYTES: "highest traffic, hot",
    ROTATED_BYTES: "highest traffic, rotated",
}
_UNKNOWN = "not measured"


def card(manifest: ReleaseManifest, links: Sequence[LinkMeasurement] = ()) -> str:
    """Write the card as Markdown, with a section on `links` if there are any."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("opmark.datasets.release", "templates")
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
        "usable": lambda statuses: sum(statuses.get(status, 0) for status in USABLE),
        "thousands": lambda value: f"{value:,}",
    }
    with reading_figures(manifest):
        return _rendered(templates.get_template("card.md.jinja"), manifest, links)


def _rendered(template: "Template", manifest: ReleaseManifest, links: Sequence[LinkMeasurement]) -> str:
    figures = manifest.statistics.values()
    facts = common_facts(manifest.environments)
    text = template.render(
        manifest=manifest,
        kernels=sum(target["kernels"] for target in figures),
        networks=sum(target["networks"] for target in figures),
        facts=facts,
        machine=machine(facts),
        quantities={target.name: quantities(manifest, target.name) for target in manifest.targets},
        tables=(KERNELS, NETWORKS, *(table for table in (FUSION, LINKS) if manifest.entry(table.file) is not None)),
        configurations=configurations_text(manifest),
        repeats=[table for table in (KERNEL_REPEATS, NETWORK_REPEATS) if manifest.entry(table.file) is not None],
        links=[link for link in links if link.status in USABLE],
    )
    return text.rstrip() + "\n"


def machine(facts: Mapping[str, Fact]) -> str:
    """Describe the machine by its known facts: `AMD EPYC, 2 processors, KVM, 32.0 MiB of last-level cache`."""
    processors, cache = facts.get("processors"), facts.get("last_level_bytes")
    parts = [
        *(str(value) for name, value in facts.items() if name.endswith(".gpu") and value),
        str(facts.get("cpu") or ""),
        counted(int(processors), "processor") if processors else "",
        str(facts.get("hypervisor") or ""),
        f"{format_bytes(float(cache))} of last-level cache" if cache else "",
    ]
    return ", ".join(part for part in parts if part and part != "none")


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: `1 kernel`, `6,000 kernels`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _counts(statuses: Mapping[str, int]) -> str:
    present = [f"{statuses[status]:,} {status}" for status in STATUSES if statuses.get(status)]
    return ", ".join(present) or "none"


def quantities(manifest: ReleaseManifest, target: str) -> tuple[tuple[str, str], ...]:
    """List one target's figures as names and values: highest rates, overhead, noise, agreement of repeats, fusion."""
    return tuple(_quantities(manifest, target))


def _quantities(manifest: ReleaseManifest, target: str) -> Iterator[tuple[str, str]]:
    figures = manifest.statistics[target]
    for peak in manifest.peaks:
        if peak.target == target:
            name = f"{RATES[peak.quantity]}{f', {peak.dtype}' if peak.dtype else ''}"
            yield f"{name}, of {peak.rows:,} rows", format_rate(peak.rate, peak.quantity)
    yield "call overhead, median", "–" if figures["overhead_ns"] is None else format_ns(figures["overhead_ns"])
    yield "clean samples, median share", _percent(figures["clean_fraction"])
    # the first releases lack some of these
    if figures.get("clock_ratio") is not None:
        yield "time while measuring over time at the state of the labels, median", f"{figures['clock_ratio']:.2f}"
    if "low_quality" in figures:
        yield "`low_quality` among usable kernels", _percent(figures["low_quality"])
    if figures["networks"] and "network_low_quality" in figures:
        yield "`low_quality` among usable networks", _percent(figures["network_low_quality"])
    for name, key in (("kernels", ""), ("networks", "network_")):
        if (floor := figures.get(f"{key}noise_floor")) is not None:
            yield f"noise floor of {name}: how well one label is known here", _percent(floor)
        if error := figures.get(f"{key}standard_error"):
            yield f"standard error of {name}: median over {error['rows']:,}", _percent(error["median"])
            yield f"standard error of {name}: 95th percentile", _percent(error["p95"])
    if figures.get("sampled_s"):
        yield "time inside samples", format_duration(figures["sampled_s"])
    for name, spread in (
        ("variation between processes", figures["noise"]),
        ("kernels measured again, difference", figures["retest"]),
        ("networks measured again, difference", figures["network_retest"]),
    ):
        many = f" over {spread['rows']:,}" if spread else ""
        yield f"{name}: median{many}", _percent(spread["median"]) if spread else _UNKNOWN
        if spread:
            yield f"{name}: 95th percentile", _percent(spread["p95"])
    if fusion := figures.get("fusion"):
        pairs, graph, clock = fusion["pairs"], fusion["white_box"], fusion["black_box"]
        yield "pairs of operators that become one kernel, by the runtime's graph", f"{graph['fused']} of {pairs}"
        yield "the same by the clock, and undecided by it", f"{clock['fused']}, {clock['undecided']}"
        yield "pairs on which graph and clock contradict each other", f"{fusion['differ']}"


def format_rate(rate: float, quantity: str) -> str:
    """Write a rate: `12.3 GFLOP/s` or `8.1 GB/s`."""
    unit = "FLOP/s" if quantity == FLOPS else "B/s"
    number, _, prefix = format_count(rate).partition(" ")
    return f"{number} {prefix}{unit}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
