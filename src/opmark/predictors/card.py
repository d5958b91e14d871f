"""A predictor's README: what it was trained on, and how far to trust it."""

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
        "Errors are those of kernels whose shape group was held out from training.",
        "",
        "| kind | rows | groups | median error | within ±10 % | 90 % interval |",
        "|---|---|---|---|---|---|",
    ]
    for kind, entry in sorted(manifest.kinds.items()):
        median, acc10 = entry.metrics.get("median", float("nan")), entry.metrics.get("acc10", float("nan"))
        width = entry.errors.half_width
        lines.append(
            f"| {kind} | {entry.rows} | {entry.errors.groups} | {100 * median:.1f} % | {100 * acc10:.0f} % "
            f"| ÷ and × {2.718281828459045**width:.2f} |"
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
