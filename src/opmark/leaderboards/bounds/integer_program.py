"""A mixed integer program, written row by row and solved by HiGHS (inside scipy) within a time limit."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opmark.core.native_output import native_output_discarded

# The status of scipy.optimize.milp for a program without a solution.
INFEASIBLE = 2


class IntegerProgram:
    """Minimise variable 0; every row states Σ coefficient x variable >= least."""

    def __init__(self) -> None:
        self._whole: list[int] = []
        self._upper: list[float] = []
        self._row: list[int] = []
        self._column: list[int] = []
        self._value: list[float] = []
        self._least: list[float] = []
        self.real()

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self._upper)

    def real(self, upper: float = np.inf) -> int:
        """A new variable from 0 to `upper`."""
        self._whole.append(0)
        self._upper.append(upper)
        return len(self._upper) - 1

    def binary(self) -> int:
        """A new variable that is 0 or 1."""
        number = self.real(1.0)
        self._whole[number] = 1
        return number

    def add(self, terms: Mapping[int, float], least: float) -> None:
        """One more row."""
        self._row += [len(self._least)] * len(terms)
        self._column += terms.keys()
        self._value += terms.values()
        self._least.append(least)

    def solve(self, seconds: float) -> npt.NDArray[np.float64] | None:
        """The best values found, or None if there were none in time."""
        if seconds <= 0:
            return None
        values = self._result(seconds, gap=1e-4).x
        return None if values is None else np.asarray(values, dtype=np.float64)

    def relaxed(self, seconds: float) -> npt.NDArray[np.float64] | None:
        """The best values where every variable may be a fraction, or None if there were none in time."""
        if seconds <= 0:
            return None
        result = self._result(seconds, gap=1e-6, whole=False)
        return np.asarray(result.x, dtype=np.float64) if result.status == 0 else None

    def prove(self, seconds: float) -> float | None:
        """A proven lower bound on variable 0, or None if there was none in time."""
        if seconds <= 0:
            return None
        proved = getattr(self._result(seconds, gap=1e-6), "mip_dual_bound", None)
        return None if proved is None or not math.isfinite(proved) else float(proved)

    def is_infeasible(self, seconds: float) -> bool:
        """True if it is proved that no values meet all rows."""
        return seconds > 0 and self._result(seconds, gap=1e-6).status == INFEASIBLE

    def _result(self, seconds: float, *, gap: float, whole: bool = True) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        matrix = csr_array((self._value, (self._row, self._column)), shape=(len(self._least), self.variables))
        objective = np.zeros(self.variables)
        objective[0] = 1.0
        with native_output_discarded():  # HiGHS prints some lines although it is told not to
            return milp(
                objective,
                constraints=LinearConstraint(matrix, lb=np.array(self._least)),
                integrality=np.array(self._whole) * whole,
                bounds=Bounds(np.zeros(self.variables), np.array(self._upper)),
                options={"time_limit": seconds, "mip_rel_gap": gap},
            )
