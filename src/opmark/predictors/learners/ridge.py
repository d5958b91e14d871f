"""Ridge regression on standardised columns."""

from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Floats, check_shapes

# A power law says nothing beyond e³ times the values that it was fitted to.
MARGIN = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ridge:
    """`intercept` + standardised columns · `slopes`, kept within [`low`, `high`]."""

    centre: Floats
    scale: Floats
    slopes: Floats
    intercept: float
    low: float
    high: float

    def __post_init__(self) -> None:
        check_shapes(scale=(self.scale, self.centre.shape), slopes=(self.slopes, self.centre.shape))
        if not self.low <= self.high or not self.scale.all():
            raise ValueError("a ridge regression cannot have these limits or scales")

    def predict(self, columns: Floats) -> Floats:
        """Predict one value per row."""
        total: Floats = np.clip(
            self.intercept + (columns - self.centre) / self.scale @ self.slopes, self.low, self.high
        )
        return total


def fit_ridge(columns: Floats, target: Floats, penalty: float) -> Ridge:
    """Solve the normal equations with `penalty` added to the diagonal of the Gram matrix."""
    centre, scale = standardisation(columns)
    standard = (columns - centre) / scale
    gram = standard.T @ standard + penalty * np.eye(standard.shape[1])
    return Ridge(
        centre=centre,
        scale=scale,
        slopes=np.linalg.solve(gram, standard.T @ (target - target.mean())),
        intercept=float(target.mean()),
        low=float(target.min()) - MARGIN,
        high=float(target.max()) + MARGIN,
    )


def standardisation(columns: Floats) -> tuple[Floats, Floats]:
    """The mean and the standard deviation of each column; 1 instead of the deviation of a constant column."""
    deviation = columns.std(axis=0)
    return columns.mean(axis=0), np.where(deviation > 1e-9, deviation, 1.0)
