"""The noise floor: every metric of one measurement against another, which no predictor can beat."""

import numpy as np

from opmark.core.measurements.measurement import USABLE
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.tables import Table
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.model.metrics import all_metrics

# The difference of two labels has twice the variance of one.
_OF_TWO = np.sqrt(2.0)


def kernel_noise(table: Table) -> tuple[Floats, Floats]:
    """Look up the variation between processes and the standard error of each hot label, NaN where unknown."""
    error = table.labels.error
    return table.variation, np.full(len(table.inputs), np.nan) if error is None else error


def noise_floor(measured_ns: Floats, variation: Floats, deviation: Floats | None = None) -> dict[str, float | None]:
    """Compute every metric of a second measurement of the same kernels; empty where nothing is known of any.

    Where the standard error `deviation` of a label is known, the difference of two labels is drawn from it, the same in
    every call. Otherwise, the second measurement is longer and shorter in turn by the `variation` between processes, so
    that there is no bias.
    """
    drawn = np.full(len(measured_ns), np.nan)
    if deviation is not None:
        drawn = _OF_TWO * deviation * np.random.default_rng(0).standard_normal(len(measured_ns))
    known = np.isfinite(drawn) | np.isfinite(variation)
    if not known.any():
        return {}
    first = measured_ns[known]
    sign = np.where(np.arange(len(first)) % 2 == 0, 1.0, -1.0)
    offset = np.where(np.isfinite(drawn[known]), drawn[known], sign * variation[known])
    return dict(all_metrics(first, first * np.exp(offset)))


def network_noise_floor(evidence: Evidence) -> dict[str, float | None]:
    """Compute every metric of networks that were measured again, training ones included.

    Without repeats, the standard errors of the labels stand for them; empty where there is neither.
    """
    pairs = [(one.latency_ns, again.latency_ns) for one, again in evidence.network_retests]
    first, second = np.array([pair for pair in pairs if None not in pair], dtype=np.float64).reshape(-1, 2).T
    if len(first):
        return dict(all_metrics(first, second))
    known = [
        (one.latency_ns, one.standard_error)
        for one in evidence.networks
        if one.status in USABLE and one.latency_ns and one.standard_error is not None
    ]
    measured, deviation = np.array(known, dtype=np.float64).reshape(-1, 2).T
    return noise_floor(measured, np.full(len(measured), np.nan), deviation)
