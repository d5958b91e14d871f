"""The slowdown of a kernel beside a neighbour on another core: exp(sensitivity · pressure).

A kernel's sensitivity and the pressure that it exerts are each the exponential of a linear function of its bytes per
FLOP and of its bytes over the level-2 cache; a stressor's pressure is a number. So few measurements with stressors tell
something about all pairs (bubble-up, Mars et al., MICRO 2011).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.corun import CorunMeasurement
from opmark.core.slug import Slug
from opmark.kinds import work_of
from opmark.predictors.inputs.arrays import Floats

# A constant, log bytes per FLOP, log bytes over the level-2 cache and its square, each about one.
FEATURES = 4
_INTENSITY_SCALE, _CACHE_SCALE = 3.0, 3.0
# Beyond this, exponents are those of nothing that was measured.
_LEAST_EXPONENT, _MOST_EXPONENT = -12.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CorunJudgement:
    """Errors of predicted factors on held-out pairs: |predicted / measured - 1|.

    `no_slowdown_error` is the median error of predicting 1, `constant_error` that of one factor for all pairs, and
    `noise` the median standard error of the measured factors.
    """

    pairs: int
    median_error: float
    p90_error: float
    no_slowdown_error: float
    constant_error: float
    noise: float
    median_factor: float
    largest_factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CorunModel:
    """The slowdown between two cores of `device`, for kernels of one target.

    `sensitivity` and `pressure` are the weights of the features, `stressors` the pressure of each stressor.
    """

    device: Slug
    target: str
    level2_bytes: int
    sensitivity: tuple[float, ...]
    pressure: tuple[float, ...]
    stressors: Mapping[str, float]
    trials: int
    judgement: CorunJudgement | None = None

    def __post_init__(self) -> None:
        for name in ("sensitivity", "pressure"):
            if len(getattr(self, name)) != FEATURES:
                raise ValueError(f"{name}: {FEATURES} weights are needed, not {len(getattr(self, name))}")
        if self.level2_bytes < 1:
            raise ValueError(f"level2_bytes: must be positive, not {self.level2_bytes}")

    def sensitivities(self, kernels: Sequence[Kernel]) -> Floats:
        """Compute the sensitivity of each kernel."""
        return exponential(corun_features(kernels, self.level2_bytes), np.array(self.sensitivity))

    def pressures(self, kernels: Sequence[Kernel]) -> Floats:
        """Compute the pressure that each kernel exerts."""
        return exponential(corun_features(kernels, self.level2_bytes), np.array(self.pressure))

    def factors(self, kernels: Sequence[Kernel], beside: Sequence[Kernel]) -> Floats:
        """Compute the factor, at least 1, by which each kernel is slowed by the one at its place in `beside`."""
        found: Floats = np.exp(self.sensitivities(kernels) * self.pressures(beside))
        return found

    def predicted(self, rows: Sequence[CorunMeasurement]) -> Floats:
        """Predict the factors of measured rows, stressors included."""
        sensitivity = self.sensitivities([row.kernel for row in rows])
        found: Floats = np.exp(sensitivity * self._pressure_of(rows))
        return found

    def interference(self, kernels: Sequence[Kernel]) -> dict[str, dict[str, float]]:
        """The factors by kind and kind beside it, for the kernels of a problem: means of the logarithms."""
        kinds = sorted({kernel.kind for kernel in kernels})
        own = {kind: [kernel for kernel in kernels if kernel.kind == kind] for kind in kinds}
        sensitivity = {kind: float(self.sensitivities(own[kind]).mean()) for kind in kinds}
        pressure = {kind: float(self.pressures(own[kind]).mean()) for kind in kinds}
        return {
            kind: {other: round(float(np.exp(sensitivity[kind] * pressure[other])), 6) for other in kinds}
            for kind in kinds
        }

    def _pressure_of(self, rows: Sequence[CorunMeasurement]) -> Floats:
        found = np.array([self.stressors.get(row.neighbour, 0.0) for row in rows])
        places = [place for place, row in enumerate(rows) if row.beside is not None]
        if places:
            found[places] = self.pressures([row.beside for row in rows if row.beside is not None])
        return found


def corun_features(kernels: Sequence[Kernel], level2_bytes: int) -> Floats:
    """Compute one row of `FEATURES` numbers per kernel."""
    works = [work_of(kernel) for kernel in kernels]
    moved = np.array([work.moved_bytes + 1.0 for work in works])
    flops = np.array([work.flops + 1.0 for work in works])
    intensity = np.clip(np.log(moved / flops) / _INTENSITY_SCALE, -3.0, 3.0)
    cache = np.clip(np.log(moved / max(level2_bytes, 1)) / _CACHE_SCALE, -3.0, 3.0)
    found: Floats = np.column_stack([np.ones(len(kernels)), intensity, cache, cache**2])
    return found


def exponential(features: Floats, weights: Any) -> Floats:
    """Compute exp(features · weights) within the range of what can be measured."""
    found: Floats = np.exp(np.clip(features @ weights, _LEAST_EXPONENT, _MOST_EXPONENT))
    return found
