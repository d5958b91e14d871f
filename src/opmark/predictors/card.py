"""A predictor's README: what it was trained on, and how far to trust it."""

from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opmark.predictors.bundle import Manifest


def card(manifest: "Manifest") -> str:
    """The card of a bundle as Markdown."""
    from opmark.core.units import format_ns

    constants = manifest.constants
    lines = [
        f"# Predictor of {manifest.target}",
        "",
        f"Estimator `{manifest.estimator}`, trained on release {manifest.origin.device}/{manifest.origin.version} "
        f"(id {manifest.origin.id}), runtime version {manifest.target.version or 'unknown'}.",
        "",
        *_transfer(manifest),
        "Errors are those of kernels whose shape group was held out from training.",
        "",
        "| kind | rows | groups | median error | within ±10 % | 90 % interval |",
        "|---|---|---|---|---|---|",
    ]
    for kind, entry in sorted(manifest.kinds.items()):
        lines.append(
            f"| {kind} | {entry.rows} | {entry.errors.groups} | {_percent(entry.metrics.get('median'), 1)} "
            f"| {_percent(entry.metrics.get('acc10'), 0)} | ÷ and × {exp(entry.errors.half_width):.2f} |"
        )
    lines += [
        "",
        f"Networks: {constants.note}; rotated share w = {constants.ceiling:.2f} / (1 + ({constants.midpoint:.2f} / x)^"
        f"{constants.steepness:.2f}) of x = (weights + peak activations) / last-level cache, gap "
        f"{format_ns(constants.gap_ns)} per kernel.",
        "",
        "Load it with `opmark predict MODEL --bundle FOLDER` or `opmark.predictors.bundle.load`. Licence: CC BY 4.0.",
        "",
    ]
    return "\n".join(lines)


def _transfer(manifest: "Manifest") -> list[str]:
    """Where few samples were learned from: how many, whose predictor helped, and what validation said of each way."""
    made = manifest.transfer
    if made is None:
        return []
    donor = f"the predictor of {made.donor} (id {made.donor_id})" if made.donor else "no other predictor"
    tried = sorted(made.validation.items(), key=lambda item: item[1])
    return [
        f"Made by transfer from {made.samples} kernels of this device and {donor}. Kinds without rows are the donor's, "
        "times the factor between the devices."
        if made.donor
        else f"Made by transfer from {made.samples} kernels of this device; validation chose {donor}.",
        *([f"Network constants are those of {made.constants}."] if made.constants else []),
        "",
        "| way | validation error | |",
        "|---|---|---|",
        *(f"| {name} | {_percent(error, 1)} | {'chosen' if name == made.method else ''} |" for name, error in tried),
        "",
    ]


def _percent(share: float | None, digits: int) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"
