"""Errors of predictions by nn-Meter's formulas, and the device time that training rows take.

All metrics are fractions except `rmse`, which has the unit of the latency.
"""

from collections.abc import Callable, Mapping

import numpy as np

from opmark.predictors.inputs.arrays import Floats

# The pace of the first release's collection on two shared cores, including waits for a slow clock, was 1.8 to 2.3
# kernels a second at full quality (`benchmarks/throughput.py` prints a machine's own). Releases do not record it.
KERNELS_PER_SECOND = 2.0


def _relative(measured: Floats, predicted: Floats) -> Floats:
    return (predicted - measured) / measured


def _within(limit: float) -> Callable[[Floats, Floats], float]:
    def share(measured: Floats, predicted: Floats) -> float:
        # an error equal to the limit counts as within, despite rounding
        return float(np.mean(np.abs(_relative(measured, predicted)) <= limit * (1 + 1e-12)))

    return share


def rmse(measured: Floats, predicted: Floats) -> float:
    """Compute the root of the mean squared error, in the unit of the latencies (nn-Meter's `rmse`)."""
    return float(np.sqrt(np.mean((predicted - measured) ** 2)))


def rmspe(measured: Floats, predicted: Floats) -> float:
    """Compute the root of the mean squared relative error (nn-Meter's `rmspe`)."""
    return float(np.sqrt(np.mean(_relative(measured, predicted) ** 2)))


def kendall_tau(measured: Floats, predicted: Floats) -> float:
    """Compute Kendall's τ-b; 1 where fewer than two values can be ordered."""
    from scipy.stats import kendalltau

    if len(measured) < 2 or np.ptp(measured) == 0:
        return 1.0
    tau = float(kendalltau(measured, predicted).statistic)
    # constant predictions order nothing
    return 0.0 if np.isnan(tau) else tau


def weighted_acc10(measured: Floats, predicted: Floats) -> float:
    """Compute the share of the measured time in kernels predicted within ±10 %."""
    within = np.abs(_relative(measured, predicted)) <= 0.1 * (1 + 1e-12)
    return float(measured[within].sum() / measured.sum())


METRICS: Mapping[str, Callable[[Floats, Floats], float]] = {
    "rmse": rmse,
    "rmspe": rmspe,
    "acc5": _within(0.05),
    "acc10": _within(0.10),
    "acc15": _within(0.15),
    "weighted-acc10": weighted_acc10,
    "mape": lambda measured, predicted: float(np.mean(np.abs(_relative(measured, predicted)))),
    "median": lambda measured, predicted: float(np.median(np.abs(_relative(measured, predicted)))),
    "p90": lambda measured, predicted: float(np.quantile(np.abs(_relative(measured, predicted)), 0.9)),
    "signed-median": lambda measured, predicted: float(np.median(_relative(measured, predicted))),
    "kendall-tau": kendall_tau,
}


def all_metrics(measured: Floats, predicted: Floats, *, but: str = "") -> dict[str, float]:
    """Compute every metric, by name, of at least one pair, without the one called `but`."""
    return {name: metric(measured, predicted) for name, metric in METRICS.items() if name != but}


def coverage(measured: Floats, low: Floats, high: Floats) -> float:
    """Compute the share of measured values within their intervals."""
    return float(np.mean((measured >= low) & (measured <= high)))


def device_minutes(rows: int, kernels_per_second: float) -> float:
    """Compute the minutes that measuring both labels of `rows` kernels takes."""
    return rows / kernels_per_second / 60


def assumption(kernels_per_second: float) -> str:
    """State the pace behind every figure of device time."""
    return f"device minutes assume {kernels_per_second:g} kernels measured a second"
