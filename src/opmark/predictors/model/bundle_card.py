"""A bundle's README: its training data, its errors, and its sum of kernels."""

from math import exp

from opmark.core.units import counted, format_ns
from opmark.predictors.composition.constants import ClassConstants, NetworkConstants
from opmark.predictors.model.manifest import CORRECTED, BundleManifest

_SUM = (
    "A network is k · Σ [hot + (w · s + v · (1 − s)) · (rotated − hot)] over its kernels, `gap` for every call, views "
    "included, c · `matrix gap` for every one that does matrix work, and on eager torch `Python call` for every Python "
    "function that a forward pass enters. k is the time of kernels in a network over their labels; s is the share of "
    "weights in a kernel's bytes; "
    "w = ceiling / (1 + (midpoint / x)^steepness) of x = (weight bytes read + peak activation bytes{traffic}) / "
    "last-level cache is the share of weights that have left the cache when the network reads them again; v is the "
    "share of the rotated cost that activations keep; c, the share of the library's code that has left the level-2 "
    "cache before the next matrix work, is {evicted}."
)


def card(manifest: BundleManifest) -> str:
    """Write the card of a bundle as Markdown."""
    target = manifest.target
    threads = f"{target.threads} thread{'' if target.threads == 1 else 's'}"
    lines = [
        f"# Predictor of {target}",
        "",
        f"Estimator `{manifest.estimator}`, trained on release {manifest.origin.device}/{manifest.origin.version} "
        f"(id {manifest.origin.id}); runtime {target.backend} {target.version or '(version not recorded)'}, {threads}"
        f"{', options ' + ', '.join(target.options) if target.options else ''}.",
        "",
        *_transfer(manifest),
        "## Kernels",
        "",
        "Errors are those of hot latencies, predicted from kernels of other shape groups: from no similar one, such "
        "as the same convolution with other channels. What a model searches, columns and lengths, follows all "
        "kernels, these included. `opmark predictors evaluate` searches without them; its errors may be larger. Nine "
        "in ten measured latencies should lie between the predicted one divided by the interval's factor and "
        "multiplied by it; the factor is larger for kernels beyond the measured range. Label noise is the share of "
        "the interval's variance that comes from the standard errors of the labels; releases before schema 2 have "
        "none.",
        "",
        "| kind | rows | shape groups | median error | within ±10 % | 90 % interval | beyond the range | label noise |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, entry in sorted(manifest.kinds.items()):
        errors = entry.errors
        lines.append(
            f"| {kind} | {entry.rows:,} | {errors.groups:,} | {_percent(entry.metrics.get('median'), 1)} "
            f"| {_percent(entry.metrics.get('acc10'), 0)} | ÷× {exp(errors.half_width):.2f} "
            f"| ÷× {exp(errors.extrapolated_half_width):.2f} | {_percent(errors.noise_share, 0)} |"
        )
    lines += [
        "",
        "## Networks",
        "",
        *_networks(manifest.constants),
        "",
        f"Use it with `opmark predict MODEL --target {target.name}`, outside its workspace with `--bundle FOLDER`, in "
        "Python with `opmark.predictors.model.bundle.load`. Licence: CC BY 4.0.",
        "",
    ]
    return "\n".join(lines)


def _networks(constants: NetworkConstants) -> list[str]:
    """Describe the sum, its constants by class of network, and the networks that they were fitted on."""
    rows: list[tuple[str, str, NetworkConstants | ClassConstants]] = [
        ("all", counted(len(constants.networks), "network"), constants),
        *((name, f"{own.networks:,} measurements", own) for name, own in sorted(constants.classes.items())),
    ]
    faults = constants.ns_per_fault * constants.faults_per_byte
    middle, share = constants.matrix_gap_midpoint, constants.traffic_share
    return [
        _SUM.format(
            evicted=f"x / (x + {middle:.3f}), half where x is the level-2 cache" if middle else "1",
            traffic=f" + {share:.1f} · bytes of activations that kernels read and write" if share else "",
        ),
        "",
        "| networks | fitted on | k | ceiling | midpoint | steepness | v | gap | matrix gap | Python call "
        "| error of sum |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(f"| {name} | {count} | {_constants(own)} |" for name, count, own in rows),
        "",
        *([f"Page faults add {format_ns(1e6 * faults)} per MB of the network's footprint.", ""] if faults else []),
        *_host(constants),
        "The error of the sum is the standard deviation that remains if every kernel is known. A network's interval "
        f"follows from it and from the errors of its kernels, made {constants.interval_scale:.2f} times as wide, "
        "so that it covers at least nine in ten training networks whose family is left out of the fit.",
        "",
        f"{constants.note[0].upper()}{constants.note[1:]}.",
    ]


def _host(constants: NetworkConstants) -> list[str]:
    """Describe the host of a device of its own."""
    if constants.host is None:
        return []
    own = constants.host
    return [
        "The sum is the device's time; views take nothing there. A network takes at least as long as its host, which "
        f"spends {own.share:.0%} of the usual time to enqueue each kernel, {format_ns(own.view_ns)} on a view and "
        f"{format_ns(own.python_call_ns)} on a Python function, with an error of {_percent(own.deviation, 1)}.",
        "",
    ]


def _constants(own: NetworkConstants | ClassConstants) -> str:
    rotation = f"{own.ceiling:.2f} | {own.midpoint:.2f} | {own.steepness:.1f} | {own.activation_share:.2f}"
    gaps = f"{format_ns(own.gap_ns)} | {format_ns(own.matrix_gap_ns)} | {format_ns(own.python_call_ns)}"
    return f"{own.kernel_scale:.3f} | {rotation} | {gaps} | {_percent(own.composition_deviation, 1)}"


def _transfer(manifest: BundleManifest) -> list[str]:
    """Describe a transfer: the samples, the donor, and the validation error of every method."""
    made = manifest.transfer
    if made is None:
        return []
    donor = f"the predictor of {made.donor} (id {made.donor_id})" if made.donor else "no other predictor"
    if made.method == CORRECTED:
        return [
            f"Trained on all rows with {donor}: its latencies are corrected where that tells held-out rows better. "
            "It may have learned from the same kernels on its own device. The errors below do not show that; the "
            "intervals contain its own errors.",
            "",
        ]
    tried = sorted(made.validation.items(), key=lambda item: item[1])
    return [
        f"Made by transfer from {made.samples} kernels of this device and {donor}. Kinds without rows are the donor's, "
        "times the factor between the devices."
        if made.donor
        else f"Made by transfer from {made.samples} kernels of this device; validation chose {donor}.",
        *([f"Network constants are those of {made.constants}."] if made.constants else []),
        *([f"Network constants were fitted around those of {made.prior}."] if made.prior else []),
        "",
        "| method | validation error | |",
        "|---|---:|---|",
        *(f"| {name} | {_percent(error, 1)} | {'chosen' if name == made.method else ''} |" for name, error in tried),
        "",
    ]


def _percent(share: float | None, digits: int) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"
