"""The figures of a release, all derived from its rows: counts, statuses, noise and agreement of repeats."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from opmark.core.kernels.fusion import VERDICTS, pair_verdicts
from opmark.core.measurements.measurement import STATUSES, USABLE
from opmark.datasets.format.columns import (
    FUSION,
    KERNEL_REPEATS,
    KERNELS,
    NETWORK_REPEATS,
    NETWORKS,
    fusion_of,
    kernel_of,
)
from opmark.datasets.release.contents import Contents, Row

# Fewer repeats than this tell less than the standard errors.
_ENOUGH_REPEATS = 8
# The parts of a training step.
PHASES = ("forward", "backward", "update")


def statistics(contents: Contents) -> dict[str, Any]:
    """Compute the figures of every target, by name; figures without rows are None."""
    return {target.name: _of_target(contents, target.name) for target in contents.targets}


def _of_target(contents: Contents, target: str) -> dict[str, Any]:
    names = (KERNELS.name, NETWORKS.name, KERNEL_REPEATS.name, NETWORK_REPEATS.name, FUSION.name)
    rows = {name: [row for row in contents.rows.get(name, ()) if row["target"] == target] for name in names}
    kernels, networks = rows[KERNELS.name], rows[NETWORKS.name]
    return {
        "kernels": len(kernels),
        "networks": len(networks),
        "statuses": _statuses(kernels),
        "network_statuses": _statuses(networks),
        "dtypes": dict(sorted(Counter(row["dtype"] for row in kernels).items())),
        "phases": _phases(kernels),
        "standard_error": _spread([row["standard_error_hot"] for row in kernels]),
        "network_standard_error": _spread([row["standard_error"] for row in networks]),
        "sampled_s": sum(source.sampled_s.get(target, 0.0) for source in contents.sources) or None,
        "kinds": {kind: _of_kind(kernels, kind) for kind in sorted({row["kind"] for row in kernels})},
        "families": len({row["family"] for row in networks if row["status"] in USABLE}),
        "overhead_ns": _median([row["overhead_ns"] for row in kernels if row["status"] in USABLE]),
        "clock_ratio": _median([row.get("clock_ratio") for row in kernels if row["status"] in USABLE]),
        "clean_fraction": _median([row["clean_fraction"] for row in kernels if row["status"] in USABLE]),
        "noise": _spread([row["between_process_variation"] for row in kernels if row["status"] in USABLE]),
        "retest": _retest(kernels, rows[KERNEL_REPEATS.name], "latency_hot_ns", KERNELS.identity),
        "network_retest": _retest(networks, rows[NETWORK_REPEATS.name], "latency_ns", NETWORKS.identity),
        "noise_floor": noise_floor(kernels, rows[KERNEL_REPEATS.name], "latency_hot_ns", KERNELS.identity),
        "network_noise_floor": noise_floor(networks, rows[NETWORK_REPEATS.name], "latency_ns", NETWORKS.identity),
        **_fusion(rows[FUSION.name]),
    }


def phase_of(row: Row) -> str:
    """Name the part of a training step that a kernel belongs to; `forward` where several parts have it."""
    kind = str(row["kind"])
    if kind == "update":
        return "update"
    operator = str(kernel_of(row["kind"], row["parameters"]).params.get("op", ""))
    return "backward" if kind.endswith("-backward") or operator.endswith("-backward") else "forward"


def _phases(kernels: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Count the rows of each element type by phase."""
    counts = Counter((row["dtype"], phase_of(row)) for row in kernels)
    return {
        dtype: {phase: counts[dtype, phase] for phase in PHASES} for dtype in sorted({dtype for dtype, _ in counts})
    }


def noise_floor(rows: Sequence[Row], repeats: Sequence[Row], label: str, identity: tuple[str, ...]) -> float | None:
    """Estimate the error that no predictor can go below, as a fraction: how well one label is known here.

    Differences between repeats of at least eight rows tell it, and the standard errors otherwise. It is None without
    both.
    """
    again = _retest(rows, repeats, label, identity)
    if again is not None and again["rows"] >= _ENOUGH_REPEATS:
        return float(1.4826 * again["median"] / math.sqrt(2))
    error = "standard_error_hot" if label == "latency_hot_ns" else "standard_error"
    return _median([row[error] for row in rows])


def _fusion(rows: Sequence[Row]) -> dict[str, Any]:
    """Count the pairs of operators by verdict; empty where none was measured."""
    verdicts = pair_verdicts(map(fusion_of, rows))
    if not verdicts:
        return {}
    counts = {
        name: {verdict: sum(getattr(item, name) == verdict for item in verdicts) for verdict in VERDICTS}
        for name in ("white_box", "black_box")
    }
    return {"fusion": {"pairs": len(verdicts), "differ": sum(item.differ for item in verdicts), **counts}}


def _of_kind(kernels: Sequence[Row], kind: str) -> dict[str, Any]:
    rows = [row for row in kernels if row["kind"] == kind]
    usable = [row for row in rows if row["status"] in USABLE]
    hot_ns = [row["latency_hot_ns"] for row in usable]
    return {
        "rows": len(rows),
        "statuses": _statuses(rows),
        "hot_ns": {"min": min(hot_ns), "median": _median(hot_ns), "max": max(hot_ns)} if hot_ns else None,
        "rotated_over_hot": _median(
            [row["latency_rotated_ns"] / row["latency_hot_ns"] for row in usable if row["latency_rotated_ns"]]
        ),
        "noise": _median([row["between_process_variation"] for row in usable]),
    }


def _statuses(rows: Sequence[Row]) -> dict[str, int]:
    counts = Counter(row["status"] for row in rows)
    return {status: counts[status] for status in STATUSES}


def _retest(
    rows: Sequence[Row], repeats: Sequence[Row], label: str, identity: tuple[str, ...]
) -> Mapping[str, Any] | None:
    """Summarise relative differences between rows and their repeats, where both have a latency."""
    first = {tuple(row[name] for name in identity): row for row in rows if row["status"] in USABLE}
    pairs = [(first.get(tuple(row[name] for name in identity)), row) for row in repeats if row["status"] in USABLE]
    return _spread([abs(again[label] / before[label] - 1) for before, again in pairs if before is not None])


def _median(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(numpy.median(present)) if present else None


def _spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    present = [value for value in values if value is not None]
    if not present:
        return None
    median, high = numpy.quantile(present, (0.5, 0.95))
    return {"rows": len(present), "median": float(median), "p95": float(high)}
