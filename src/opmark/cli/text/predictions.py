"""Predictions and kernels as text for people, and as documented JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.text.terminal import show_table, show_warning
from opmark.core.units import counted, format_ns

if TYPE_CHECKING:
    from opmark.predictors.model.network import KernelRow, NetworkPrediction

_STEPS = frozenset({"stride", "dilation", "groups"})
_SIZES = frozenset({"shape", "shapes", "kernel", "size", "output", "batch_a", "batch_b"})


def prediction_document(found: "NetworkPrediction", mapping: str, target: str) -> dict[str, Any]:
    """A prediction as documented JSON."""
    from opmark.predictors.model.unmodelled import warnings_about

    return {
        "target": target,
        "total_ns": found.total_ns,
        "low_ns": found.low_ns,
        "high_ns": found.high_ns,
        "coverage": found.coverage,
        "noise_share": found.noise_share,
        "bytes_moved_share": found.bytes_moved_share,
        "unmodelled": found.unmodelled,
        "warnings": warnings_about(found.unmodelled),
        "rotated_share": found.rotated_share,
        "derived_share": found.derived_share,
        "host_ns": found.host_ns,
        "device_ns": found.device_ns,
        "mapping": mapping,
        "note": found.note,
        "kernels": [
            {
                "kind": row.kernel.kind,
                "params": row.kernel.params,
                "count": row.count,
                "ns": row.ns,
                "low_ns": row.low_ns,
                "high_ns": row.high_ns,
                "extrapolated": row.extrapolated,
                "derived": row.derived,
                "exact": row.exact,
                "distance": row.distance,
            }
            for row in found.rows
        ],
    }


def show_total(model: str, target: str, found: "NetworkPrediction") -> None:
    """Print the total with its interval, and warnings on stderr."""
    from opmark.predictors.model.unmodelled import warnings_about

    click.echo(total_text(model, target, found))
    for sentence in warnings_about(found.unmodelled):
        show_warning(sentence)


def show_prediction(model: str, target: str, found: "NetworkPrediction", top: int) -> None:
    """Print the total with its interval, and the `top` most expensive kernels (all for 0)."""
    kernels = sum(row.count for row in found.rows)
    total_ns = max(found.device_ns or found.total_ns, 1e-9)
    show_total(model, target, found)
    beyond = sum(row.total_ns for row in found.rows if row.extrapolated)
    click.echo(f"{counted(kernels, 'kernel')}, {len(found.rows):,} distinct")
    if found.host_ns is not None and found.device_ns is not None:
        click.echo(sides_text(found.host_ns, found.device_ns))
    for share, sentence in (
        (found.bytes_moved_share, "of the time is predicted from bytes moved alone"),
        (beyond / total_ns, "of the time lies outside the measured range"),
    ):
        if share:
            click.echo(f"{share_text(share)} {sentence}")
    if found.noise_share:
        click.echo(f"{found.noise_share:.0%} of the interval's variance is the noise of the measured labels")
    shown = found.rows[:top] if top else found.rows
    rows = [
        (
            row.kernel.kind,
            parameters_text(row.kernel.params),
            str(row.count),
            format_ns(row.ns),
            f"{format_ns(row.low_ns)} – {format_ns(row.high_ns)}",
            share_text(row.total_ns / total_ns),
            doubt_text(row),
        )
        for row in shown
    ]
    if found.derived_share:
        click.echo(f"{share_text(found.derived_share)} of the time belongs to kinds that were derived, not measured")
    show_table(("kind", "parameters", "count", "each", "interval", "share", ""), rows, left=2)
    if len(shown) < len(found.rows):
        rest = sum(row.total_ns for row in found.rows[len(shown) :])
        more = counted(len(found.rows) - len(shown), "more kernel")
        click.echo(f"and {more} with {share_text(rest / total_ns)} of the time; --top 0 shows all")
    click.echo(found.note, err=True)


def share_text(share: float) -> str:
    """A share in percent; one that rounds to nothing is less than a tenth of a percent."""
    return "< 0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def doubt_text(row: "KernelRow") -> str:
    """Say in few words on which measurement a row of a network rests."""
    if row.exact:
        return "exact"
    parts = ["extrapolated"] if row.extrapolated else []
    if row.derived:
        parts = [f"derived: {row.derived}"]
    if row.distance is not None:
        parts.append(_distance_text(row.distance))
    return ", ".join(parts)


def _distance_text(distance: float) -> str:
    """The distance to the nearest measured kernel: `12% off a measured one`, `×8 off a measured one`."""
    amount = "< 1%" if distance < 0.005 else f"{distance:.0%}" if distance < 1 else f"×{1 + distance:.0f}"
    return f"{amount} off a measured one"


def total_text(model: str, target: str, found: "NetworkPrediction") -> str:
    """The predicted latency of a whole network with its interval, as a sentence."""
    return (
        f"{model} on {target}: {format_ns(found.total_ns)} "
        f"({format_ns(found.low_ns)} to {format_ns(found.high_ns)} with {found.coverage:.0%} confidence)"
    )


def sides_text(host_ns: float, device_ns: float) -> str:
    """Say which side of a device of its own a network waits for."""
    if host_ns > device_ns:
        longer, later = f"the host needs {format_ns(host_ns)} to enqueue its calls", "the device needs"
        return f"{longer}, {later} {format_ns(device_ns)}: the network waits for the host"
    return (
        f"the device needs {format_ns(device_ns)}, the host enqueues its calls in {format_ns(host_ns)}: "
        "the network waits for the device"
    )


def parameters_text(params: Mapping[str, Any]) -> str:
    """The parameters that are not neutral, on one line: `shape=1×128×768 axis=2`, without zeros and strides of one."""
    shown = ((name, value) for name, value in params.items() if not _is_neutral(name, value))
    return " ".join(f"{name}={_value_text(value, '×' if name in _SIZES else ',')}" for name, value in shown)


def _is_neutral(name: str, value: Any) -> bool:
    neutral = 1 if name in _STEPS else 0
    if isinstance(value, tuple):
        return name not in _SIZES and all(item == neutral for item in value)
    return value in (None, "", False, neutral)


def _value_text(value: Any, between: str) -> str:
    if isinstance(value, tuple) and any(isinstance(item, tuple) for item in value):
        return ",".join(_value_text(item, between) or "scalar" for item in value)
    if isinstance(value, tuple):
        return between.join(_value_text(item, between) for item in value)
    return "yes" if value is True else str(value)
