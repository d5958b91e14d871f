"""Order statistics of latency samples: the label, its confidence, and how far processes agree."""

import math
from collections.abc import Sequence

# The label is the 10th percentile of clean samples: unlike the minimum it does not drift with their number,
# unlike the median it is not moved by a busy machine. Nothing else runs on a GPU: its label is the median.
LABEL_QUANTILE = 0.1
_Z95 = 1.96


def quantile(values: Sequence[float], fraction: float) -> float:
    """The `fraction` quantile of `values`, linearly interpolated. Raises `ValueError` if there are none."""
    if not values:
        raise ValueError("no samples")
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def quantiles(values: Sequence[float], fractions: Sequence[float]) -> tuple[float, ...]:
    """Several quantiles at once; empty where there are no samples."""
    return tuple(quantile(values, fraction) for fraction in fractions) if values else ()


def median(values: Sequence[float]) -> float:
    """The 50 % quantile."""
    return quantile(values, 0.5)


def label(values: Sequence[float], fraction: float = LABEL_QUANTILE) -> float:
    """The latency that a set of clean samples stands for: their `fraction` quantile."""
    return quantile(values, fraction)


def half_width(values: Sequence[float], fraction: float = LABEL_QUANTILE) -> float:
    """Half the 95 % confidence interval of `label(values, fraction)`, as a part of it; infinite below five samples.

    The interval lies between the order statistics that a binomial count around the label's rank allows.
    """
    count = len(values)
    if count < 5:
        return math.inf
    ordered = sorted(values)
    deviation = _Z95 * math.sqrt(count * fraction * (1 - fraction))
    rank = fraction * (count - 1)
    low = ordered[max(0, math.floor(rank - deviation))]
    high = ordered[min(count - 1, math.ceil(rank + deviation))]
    centre = label(ordered, fraction)
    return (high - low) / 2 / centre if centre > 0 else math.inf


def variation(values: Sequence[float]) -> float | None:
    """(largest − smallest) / median of the labels of several processes; None below two."""
    if len(values) < 2:
        return None
    centre = median(values)
    return (max(values) - min(values)) / centre if centre > 0 else math.inf
