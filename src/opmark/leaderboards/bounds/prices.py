"""Prices of the devices' time, by which work on unequal devices adds up to a bound.

For any prices that are not negative and sum to 1 over all slots, the work of some units, each counted where its price
is lowest, takes at least that long on all slots together: the dual of a linear program that spreads units freely.
"""

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers

Floats = npt.NDArray[np.float64]
# Beyond so many variables the linear programs take longer than they are worth.
VARIABLES_AT_MOST = 3_000


def price_rows(run_ns: Integers, slots: Integers, parts: npt.NDArray[np.bool_]) -> Floats:
    """P×D rows of prices: equal ones, those of speeds on the whole graph, and the best for each row of `parts` (N×U).

    A negative `run_ns` (U×D) says that a device cannot run the unit.
    """
    able = run_ns >= 0
    whole = np.where(able, run_ns, 0).sum(axis=0)
    rows = [np.ones(len(slots)), 1.0 / np.maximum(whole, 1.0)]
    if run_ns.size <= VARIABLES_AT_MOST:
        rows += [row for part in parts if part.any() and (row := _dual(run_ns[part], slots)) is not None]
    table = np.array(rows)
    found: Floats = table / (table @ slots)[:, None]
    return found


def least_work_ns(run_ns: Integers, prices: Floats) -> Floats:
    """P×U: the priced time of each unit where it is lowest; 0 where no device can run a unit."""
    priced = np.where(run_ns < 0, np.inf, prices[:, None, :] * np.maximum(run_ns, 0)).min(axis=2)
    found: Floats = np.where(np.isfinite(priced), priced, 0.0)
    return found


def _dual(run_ns: Integers, slots: Integers) -> Floats | None:
    """The prices at which the work of the units is dearest, None where there are none."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    row, column = np.nonzero(run_ns >= 0)
    count, devices = len(row), len(slots)
    scale = max(1.0, float(run_ns.max()))
    busy = csr_array(
        (
            np.concatenate([run_ns[row, column] / scale, -slots]),
            (np.concatenate([column, np.arange(devices)]), np.concatenate([np.arange(count), np.full(devices, count)])),
        ),
        shape=(devices, count + 1),
    )
    whole = csr_array((np.ones(count), (row, np.arange(count))), shape=(len(run_ns), count + 1))
    objective = np.zeros(count + 1)
    objective[count] = 1
    result = linprog(
        objective, A_ub=busy, b_ub=np.zeros(devices), A_eq=whole, b_eq=np.ones(len(run_ns)), method="highs"
    )
    if not result.success:
        return None
    found: Floats = np.maximum(0.0, -np.asarray(result.ineqlin.marginals, dtype=np.float64))
    return found if found @ slots > 0 else None
