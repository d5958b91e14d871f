"""Order statistics of latency samples: the label, its confidence interval, and the variation between processes."""

import math
from collections.abc import Sequence

# The label is the 10th percentile of the clean samples. Unlike the minimum, it does not depend on their number; unlike
# the median, it does not depend on other load. A GPU has no other load: its label is the median.
LABEL_QUANTILE = 0.1
_Z95 = 1.96


def quantile(values: Sequence[float], fraction: float) -> float:
    """The `fraction` quantile of `values`, linearly interpolated. Raises `ValueError` without values."""
    if not values:
        raise ValueError("no samples")
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def quantiles(values: Sequence[float], fractions: Sequence[float]) -> tuple[float, ...]:
    """The quantiles of `values` at all `fractions`; empty without values."""
    return tuple(quantile(values, fraction) for fraction in fractions) if values else ()


def median(values: Sequence[float]) -> float:
    """The median of `values`. Raises `ValueError` without values."""
    return quantile(values, 0.5)


def label(values: Sequence[float], fraction: float = LABEL_QUANTILE) -> float:
    """The label of a set of clean samples: their `fraction` quantile."""
    return quantile(values, fraction)


def half_width(values: Sequence[float], fraction: float = LABEL_QUANTILE) -> float:
    """Half the 95 % confidence interval of a label, relative to the label; infinite below five samples.

    The ends of the interval are order statistics: the rank of the label plus and minus a binomial deviation.
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
    """The variation of several processes' labels: (largest - smallest) / median; None below two labels."""
    if len(values) < 2:
        return None
    centre = median(values)
    return (max(values) - min(values)) / centre if centre > 0 else math.inf
