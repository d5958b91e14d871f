"""Tick marks of linear and logarithmic axes, at round numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark at `value`; `fraction` is its position between the low end (0) and the high end (1)."""

    value: float
    fraction: float
    label: str


def linear_ticks(low: float, high: float, about: int, text: Callable[[float], str]) -> list[Tick]:
    """About `about` marks at multiples of 1, 2 or 5 times a power of ten within [low, high]."""
    if not high > low:
        return []
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [index * step for index in range(first, last + 1)]
    return [Tick(value=value, fraction=(value - low) / (high - low), label=text(value)) for value in values]


def log_ticks(low: float, high: float, text: Callable[[float], str]) -> list[Tick]:
    """Marks at powers of ten within [low, high], and at 1, 2 and 5 times them where there are fewer than three."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for factors in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        found = [factor * 10.0**exponent for exponent in exponents for factor in factors]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) >= 3:
            break
    return [Tick(value=value, fraction=log_fraction(value, low, high), label=text(value)) for value in found]


def log_fraction(value: float, low: float, high: float) -> float:
    """The position of `value` between `low` (0) and `high` (1) on a logarithmic axis."""
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
