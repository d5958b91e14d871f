"""What a release says of one target in a few figures, as text: for its card and for `opmark datasets show`."""

from collections.abc import Iterator

from opmark.core.units import format_count, format_duration, format_ns
from opmark.datasets.format.manifest import Manifest
from opmark.datasets.validation.peaks import FLOPS, HOT_BYTES, ROTATED_BYTES

RATES = {
    FLOPS: "highest arithmetic rate",
    HOT_BYTES: "highest traffic, hot",
    ROTATED_BYTES: "highest traffic, rotated",
}
_UNKNOWN = "not measured"


def quantities(manifest: Manifest, target: str) -> tuple[tuple[str, str], ...]:
    """Names and values: rates of the fastest rows, overhead, noise, agreement of repeats, fusion."""
    return tuple(_quantities(manifest, target))


def _quantities(manifest: Manifest, target: str) -> Iterator[tuple[str, str]]:
    figures = manifest.statistics[target]
    for peak in manifest.peaks:
        if peak.target == target:
            name = f"{RATES[peak.quantity]}{f', {peak.dtype}' if peak.dtype else ''}"
            yield f"{name}, of {peak.rows:,} rows", format_rate(peak.rate, peak.quantity)
    yield "call overhead, median", "–" if figures["overhead_ns"] is None else format_ns(figures["overhead_ns"])
    yield "clean samples, median share", _percent(figures["clean_fraction"])
    # The first releases have not all of these.
    if "low_quality" in figures:
        yield "`low_quality` among usable kernels", _percent(figures["low_quality"])
    if figures["networks"] and "network_low_quality" in figures:
        yield "`low_quality` among usable networks", _percent(figures["network_low_quality"])
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
    """`12.3 GFLOP/s` or `8.1 GB/s`."""
    unit = "FLOP/s" if quantity == FLOPS else "B/s"
    number, _, prefix = format_count(rate).partition(" ")
    return f"{number} {prefix}{unit}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
